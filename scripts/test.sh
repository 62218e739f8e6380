#!/usr/bin/env bash
# The tests that every change must pass: `make test`. About 40 minutes on 2 cores from nothing.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/stages.sh
. scripts/stages.sh

release() {
  configure release
  build release
  ctest --preset release
}

# The same library on the other MPI: only what talks to MPI has to run again. What needs the modelled
# file system (acceptance.faults takes minutes) is left to `make test-full`.
mpich() {
  configure release-mpich -DFOREBAY_TRAIN=OFF -DFOREBAY_BENCH=OFF -DFOREBAY_PFS=OFF
  build release-mpich mpi_tests
  ctest --preset release-mpich
}

asan() {
  configure asan
  build asan
  ctest --preset asan
}

tsan() {
  configure tsan
  build tsan thread_tests
  ctest --preset tsan
}

fuzz() {
  configure fuzz
  build fuzz fuzz_targets
  ctest --preset fuzz
}

stage release release
stage release-mpich mpich
stage asan asan
stage tsan tsan
stage fuzz fuzz
finish
