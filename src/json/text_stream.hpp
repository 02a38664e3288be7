// What RapidJSON reads from.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace rowlock {

/// A RapidJSON input stream over text that is not ended by a NUL and may hold some. At the end it shows a NUL, and
/// stays.
///
/// RapidJSON decodes every string and converts every number, also where it is told not to, and refuses some that are
/// in the grammar. We use neither result, only where a value ends; so the reader is shown tamer ones of the same shape:
/// - `\ud0..` for `\ud8..` to `\udf..`, of which it refuses those that are lone surrogates;
/// - one digit for a run of digits in a number, since it refuses 1e400. (Not for a run that begins with 0 before the
///   decimal point: that it may refuse.)
class TextStream {
  public:
    using Ch = char;

    explicit TextStream(std::string_view text) : text_(text) {}

    [[nodiscard]] Ch Peek() const {
        if (position_ >= text_.size()) return '\0';
        const char byte = text_[position_];
        return escape_ == Escape::surrogate_digit && is_surrogate_digit(byte) ? '0' : byte;
    }

    Ch Take() {
        if (position_ >= text_.size()) return '\0';
        const char shown = Peek();
        ++position_;
        if (in_string_) {
            in_string_ = shown != '"' || escape_ == Escape::backslash;
            escape_ = after(shown);
            return shown;
        }
        in_string_ = shown == '"';
        if (is_digit(shown) && (shown != '0' || in_fraction_or_exponent())) {
            while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
        }
        before_last_ = last_;
        last_ = shown;
        return shown;
    }

    [[nodiscard]] std::size_t Tell() const { return position_; }

    // RapidJSON asks for these of every stream, and uses them on those that it writes to.
    Ch* PutBegin() { return nullptr; }
    void Put(Ch) {}
    void Flush() {}
    std::size_t PutEnd(Ch*) { return 0; }

  private:
    enum class Escape { none, backslash, first_digit, surrogate_digit };

    [[nodiscard]] Escape after(char byte) const {
        if (escape_ == Escape::none) return byte == '\\' ? Escape::backslash : Escape::none;
        if (escape_ == Escape::backslash) return byte == 'u' ? Escape::first_digit : Escape::none;
        if (escape_ == Escape::first_digit && (byte == 'd' || byte == 'D')) return Escape::surrogate_digit;
        return Escape::none;
    }

    [[nodiscard]] bool in_fraction_or_exponent() const {
        return last_ == '.' || is_exponent(last_) || ((last_ == '+' || last_ == '-') && is_exponent(before_last_));
    }

    static bool is_exponent(char byte) { return byte == 'e' || byte == 'E'; }
    static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
    static bool is_surrogate_digit(char byte) {
        return byte == '8' || byte == '9' || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
    }

    std::string_view text_;
    std::size_t position_ = 0;
    bool in_string_ = false;
    Escape escape_ = Escape::none;
    /// The last two bytes shown outside of strings.
    char last_ = '\0';
    char before_last_ = '\0';
};

/// The reader's working memory holds decoded strings, and the text may be a keyring: what is given back is wiped.
class WipingAllocator {
  public:
    static constexpr bool kNeedFree = true;

    void* Malloc(std::size_t size) { return size == 0 ? nullptr : Realloc(nullptr, 0, size); }

    void* Realloc(void* old, std::size_t old_size, std::size_t size) {
        auto* block = static_cast<char*>(std::malloc(size + header));
        if (block == nullptr) std::abort();  // RapidJSON would write through the null pointer.
        std::memcpy(block, &size, sizeof size);
        if (old != nullptr) std::memcpy(block + header, old, old_size < size ? old_size : size);
        Free(old);
        return block + header;
    }

    static void Free(void* memory) {
        if (memory == nullptr) return;
        char* const block = static_cast<char*>(memory) - header;
        std::size_t size = 0;
        std::memcpy(&size, block, sizeof size);
        explicit_bzero(memory, size);
        std::free(block);
    }

  private:
    static constexpr std::size_t header = alignof(std::max_align_t);
};

}  // namespace rowlock
