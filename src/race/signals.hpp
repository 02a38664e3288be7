// Stops and resumes backends of a cluster of our own, so that the order in which they wake is ours to choose.
#pragma once

namespace rowlock::race {

/// Stops a process and comes back when the kernel says that it has stopped (or is gone).
void stop_process(int pid);
void resume_process(int pid);
[[nodiscard]] bool process_exists(int pid);

}  // namespace rowlock::race
