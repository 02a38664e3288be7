// test_server start|stop: the CTest fixture that all server tests need.
#include <cstdio>
#include <exception>
#include <string_view>

#include "support/test_server.hpp"

int main(int count, char** arguments) {
    const std::string_view verb = count == 2 ? arguments[1] : "";
    try {
        if (verb == "start") {
            rowlock::test::start_test_server();
            std::printf("%s\n", rowlock::test::test_server().connection.c_str());
            return 0;
        }
        if (verb == "stop") {
            rowlock::test::stop_test_server();
            return 0;
        }
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "test_server: %s\n", fault.what());
        return 1;
    }
    std::fprintf(stderr, "usage: test_server start|stop\n");
    return 2;
}
