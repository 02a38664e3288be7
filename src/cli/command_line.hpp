// The words of the command line, and which function each of them calls.
#pragma once

namespace rowlock::cli {

/// Runs the command that the arguments name and gives back the exit code. Never throws.
int run(int argument_count, char** arguments);

}  // namespace rowlock::cli
