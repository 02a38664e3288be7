# The commands of the README, and little else. CMakePresets.json has the flags, CMakeLists.txt the targets.

.PHONY: demo test bench build setup
.NOTPARALLEL:

demo: build
	./build/rowlock demo

test: build
	scripts/setup tests
	ctest --test-dir build --output-on-failure --parallel 2

bench: build
	./build/rowlock bench append
	./build/rowlock bench stage
	./build/rowlock bench track
	./build/rowlock bench verify
	./build/rowlock bench verify --bundle
	./build/rowlock bench claim
	./build/rowlock bench quota
	./build/rowlock bench lifecycle
	./build/rowlock bench race
	./build/chain_benchmark

build: setup
	cmake --preset release $(CMAKE_ARGUMENTS)
	cmake --build build --parallel 2

setup:
	scripts/setup
