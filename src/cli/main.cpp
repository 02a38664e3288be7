#include "cli/command_line.hpp"

int main(int argument_count, char** arguments) {
    return rowlock::cli::run(argument_count, arguments);
}
