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
/// It also lets lone surrogates pass: RapidJSON decodes every string and refuses some of them, though the grammar has
/// them. We never use what it decoded, so the reader is shown `\ud0..` instead of `\ud8..` to `\udf..`.
class TextStream {
  public:
    using Ch = char;

    explicit TextStream(std::string_view text) : text_(text) {}

    [[nodiscard]] Ch Peek() const {
        if (position_ >= text_.size()) return '\0';
        const char byte = text_[position_];
        return state_ == State::surrogate_digit && is_surrogate_digit(byte) ? '0' : byte;
    }

    Ch Take() {
        if (position_ >= text_.size()) return '\0';
        const char shown = Peek();
        state_ = after(shown);
        ++position_;
        return shown;
    }

    [[nodiscard]] std::size_t Tell() const { return position_; }

    // RapidJSON asks for these of every stream, and uses them on those that it writes to.
    Ch* PutBegin() { return nullptr; }
    void Put(Ch) {}
    void Flush() {}
    std::size_t PutEnd(Ch*) { return 0; }

  private:
    enum class State { plain, backslash, first_digit, surrogate_digit };

    [[nodiscard]] State after(char byte) const {
        if (state_ == State::plain) return byte == '\\' ? State::backslash : State::plain;
        if (state_ == State::backslash) return byte == 'u' ? State::first_digit : State::plain;
        if (state_ == State::first_digit && (byte == 'd' || byte == 'D')) return State::surrogate_digit;
        return State::plain;
    }

    static bool is_surrogate_digit(char byte) {
        return byte == '8' || byte == '9' || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
    }

    std::string_view text_;
    std::size_t position_ = 0;
    State state_ = State::plain;
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
