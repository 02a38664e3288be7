// A PostgreSQL for one run of the checker: its backends may be stopped, its data lost, nothing of it is flushed.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "server/child_process.hpp"
#include "server/private_server.hpp"

namespace rowlock::race {

class ThrowawayCluster {
  public:
    /// Starts one, in memory where the machine has /dev/shm: a copy of a template that is made at first use. Removes
    /// what a run that was killed has left behind, its stopped backends too. Throws SetupError.
    ThrowawayCluster();
    ~ThrowawayCluster();
    ThrowawayCluster(const ThrowawayCluster&) = delete;
    ThrowawayCluster& operator=(const ThrowawayCluster&) = delete;

    /// To the database `postgres`, as the superuser.
    [[nodiscard]] std::string connection() const;
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  private:
    std::filesystem::path folder_;
    Descriptor lock_;
    std::unique_ptr<PrivateServer> server_;
};

}  // namespace rowlock::race
