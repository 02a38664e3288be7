// Lines of any length from a file or a pipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/interruption.hpp"

namespace rowlock::cli {

class LineReader {
  public:
    /// "-" is standard input. Throws InvalidInput if the file can't be read.
    explicit LineReader(const std::string& path);
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    /// The next line without its line break ("\n" or "\r\n"); nothing at the end, and nothing once a signal came, when
    /// an unfinished line is left out. Throws InvalidInput on a read error.
    std::optional<std::string> next(Interruption& interruption);
    /// The number of the line that `next` gave last, from 1.
    [[nodiscard]] std::int64_t number() const noexcept { return number_; }

  private:
    /// False at the end of the file.
    bool fill();
    std::string take_line(std::size_t length, std::size_t with_break);

    std::string path_;
    int file_;
    std::string buffer_;
    std::size_t begin_ = 0;     ///< Of what is not taken yet in buffer_.
    std::size_t searched_ = 0;  ///< No line break before this.
    std::int64_t number_ = 0;
};

}  // namespace rowlock::cli
