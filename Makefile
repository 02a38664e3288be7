# The commands of the README, and little else. CMakePresets.json has the flags, CMakeLists.txt the targets.

.PHONY: demo test bench bench-chart build setup
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
	./build/rowlock bench growth --entries 1000000
	./build/chain_benchmark

# Figures of one run in docs, beside what they must reach. PEER_SQL: a folder with message-db's SQL.
bench-chart: build
	for bench in "append $(PEER_SQL:%=--peer-sql %)" stage track verify "verify --bundle" growth; do \
	    ./build/rowlock --json bench $$bench || exit 1; done > build/bench.jsonl
	./build/rowlock bench chart build/bench.jsonl > docs/performance.svg
	./build/rowlock bench chart --table build/bench.jsonl

build: setup
	cmake --preset release $(CMAKE_ARGUMENTS)
	cmake --build build --parallel 2

setup:
	scripts/setup
