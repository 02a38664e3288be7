// Lines of any length from a file or a pipe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace rowlock::cli {

class LineReader {
  public:
    /// "-" is standard input. Throws InvalidInput if the file can't be read.
    explicit LineReader(const std::string& path);

    /// The next line without its line break ("\n" or "\r\n"); nothing at the end. Throws InvalidInput on a read error.
    std::optional<std::string> next();
    /// The number of the line that `next` gave last, from 1.
    [[nodiscard]] std::int64_t number() const noexcept { return number_; }

  private:
    struct Closer {
        void operator()(std::FILE* file) const noexcept;
    };
    std::string path_;
    std::unique_ptr<std::FILE, Closer> file_;
    std::int64_t number_ = 0;
};

}  // namespace rowlock::cli
