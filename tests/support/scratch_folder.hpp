// A folder under /tmp that a test may fill; gone at the end.
#pragma once

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <filesystem>
#include <stdexcept>
#include <string>

namespace rowlock::test {

class ScratchFolder {
  public:
    /// Others may enter it: the server's account must get to its own folder inside.
    ScratchFolder() {
        if (mkdtemp(name_.data()) == nullptr) throw std::runtime_error("no folder could be made in /tmp");
        namespace fs = std::filesystem;
        fs::permissions(name_, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(name_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    [[nodiscard]] std::filesystem::path path() const { return name_; }

  private:
    std::string name_ = "/tmp/rowlock-test-XXXXXX";
};

}  // namespace rowlock::test
