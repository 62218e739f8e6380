#!/usr/bin/env bash
# The tests that every change must pass: `make test`. Some 20 minutes on 2 cores from nothing, most of
# them compilation: so each test runs where it proves most. Those of single rooms run under the address
# sanitizer and, where threads of one process meet, under the thread sanitizer; what needs ranks on both
# MPIs; commands and packages as they are shipped. `make test-full` runs all of them everywhere.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/stages.sh
. scripts/stages.sh

# prepare PRESET [cmake option...]: from nothing, most of the time would go into headers and starts of
# processes, so sources are compiled in groups, without what only a debugger reads, under sanitizers
# without optimization, and a test program is one case. A folder that somebody works in keeps its way to
# compile, and its tests; `make test-full` compiles and runs everything by itself.
prepare() {
  local quickly=()
  if [ ! -e "build/$1/CMakeCache.txt" ]; then
    quickly=(-DFOREBAY_UNITY=ON -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG"
             -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DFOREBAY_ROOM_TESTS="${room_tests:-ON}")
  fi
  configure "$@" "${quickly[@]}" -DFOREBAY_TEST_PROGRAMS=ON
}

# run_tests PRESET [label...]: without these labels, and without what is left to `make test-full`. (This
# takes the place of what the preset leaves out.)
run_tests() {
  local preset=$1 labels=long label
  shift
  for label in "$@"; do labels+="|$label"; done
  ctest --preset "$preset" -LE "^($labels)\$"
}

release() {
  room_tests=OFF prepare release
  build release
  run_tests release
}

# The same library on the other MPI: only what talks to MPI has to run again. What needs the modelled
# file system (acceptance.faults takes minutes) is left to `make test-full`. Without NCCL, so that both
# ways compile where it is found.
mpich() {
  prepare release-mpich -DFOREBAY_TRAIN=OFF -DFOREBAY_BENCH=OFF -DFOREBAY_PFS=OFF -DFOREBAY_NCCL=OFF
  build release-mpich mpi_tests
  run_tests release-mpich
}

# With the fuzz targets, which want the same library and start from sound files, and what the Python
# package does with memory.
asan() {
  prepare asan -DFOREBAY_FUZZ=ON -DFOREBAY_FUZZ_SECONDS=2
  build asan room_tests fuzz_targets
  run_tests asan mpi cli install
  scripts/python-asan.sh
}

tsan() {
  prepare tsan
  build tsan thread_tests
  run_tests tsan
}

# The Python package, from its wheel, and the pages that document it. Compiled with the options of the
# release stage, so most objects come from the compiler cache. Pages beside tests, which mostly use one core.
python_package() {
  local log=build/docs.log docs
  scripts/docs.sh >"$log" 2>&1 &
  docs=$!
  scripts/python.sh openmpi
  local status=0
  wait "$docs" || status=$?
  cat "$log"
  return "$status"
}

stage release release
stage python python_package
stage release-mpich mpich
stage asan asan
stage tsan tsan
finish
