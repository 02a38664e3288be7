// A file that is there whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace rowlock::cli {

/// Refuses a name that is taken (SetupError): what stands there may be the only proof of something. Until `keep` it has
/// another name, and is gone with the object. `-` means stdout, where all that is written goes out at once.
class NewFile {
  public:
    explicit NewFile(std::string path);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    void write(std::string_view bytes);
    /// On return file and name are on the disk.
    void keep();

  private:
    [[noreturn]] void fail(const std::string& what, int error) const;
    void flush();

    std::string path_;
    std::string temporary_;
    std::string buffer_;
    int descriptor_ = -1;
};

}  // namespace rowlock::cli
