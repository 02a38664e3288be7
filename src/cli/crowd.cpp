#include "cli/crowd.hpp"

#include <exception>
#include <thread>
#include <vector>

namespace rowlock::cli {

namespace {

std::exception_ptr fault_of(const std::function<void(std::size_t)>& work, std::size_t number) {
    try {
        work(number);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

}  // namespace

void run_crowd(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::vector<std::exception_ptr> faults(count);
    {
        std::vector<std::jthread> threads;
        threads.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            threads.emplace_back([&work, &fault = faults[i], i] { fault = fault_of(work, i); });
        }
    }
    for (const auto& fault : faults) {
        if (fault) std::rethrow_exception(fault);
    }
}

}  // namespace rowlock::cli
