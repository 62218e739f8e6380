#!/usr/bin/env bash
# The tests that every change must pass: `make test`. From nothing most of its time would be compilation,
# so each test runs where it proves most. Those of single rooms run under the address
# sanitizer and, where threads of one process meet, under the thread sanitizer; what needs ranks on both
# MPIs; commands and packages as they are shipped. `make test-full` runs all of them everywhere.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/stages.sh
. scripts/stages.sh

# prepare PRESET [cmake option...]: from nothing, most of the time would go into headers and starts of
# processes, so sources are compiled in groups, without what only a debugger reads, under the address
# sanitizer without optimization (tests of whole loaders under the thread sanitizer are too slow then) and
# without checks of pointers that end a program anyway when they are null, and a test program is one case.
# A folder that somebody works in keeps its way to compile, and its tests; `make test-full` compiles and
# runs everything by itself.
prepare() {
  local quickly=() mark=build/$1/compiled_quickly
  if [ ! -e "build/$1/CMakeCache.txt" ] || [ -e "$mark" ]; then
    mkdir -p "build/$1"
    touch "$mark"
    quickly=(-DFOREBAY_UNITY=ON -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG")
    case $1 in
      release) quickly+=(-DFOREBAY_ROOM_TESTS=OFF) ;;
      asan) quickly+=(-DCMAKE_CXX_FLAGS_DEBUG="-O0 -g0 -fno-sanitize=null,vptr" -DFOREBAY_FUZZ_GUIDED=OFF) ;;
      tsan) quickly+=(-DCMAKE_CXX_FLAGS_DEBUG=-g0) ;;
    esac
    # Sanitizers make dozens of large programs, which the usual linker takes long for.
    if [[ $1 == ?san ]] && command -v ld.lld >/dev/null; then
      quickly+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld)
    fi
  fi
  configure "$@" "${quickly[@]}" -DFOREBAY_TEST_PROGRAMS=ON
}

# run_tests PRESET [ctest option...]: without what is left to `make test-full`.
run_tests() { ctest --preset "$@" -LE '^long$'; }

# With the tests on ranks, under the launcher of each MPI that is here.
release() {
  prepare release
  build release
  run_tests release
}

# With the fuzz targets, which want the same library and try their sound files and changes of them.
build_asan() {
  prepare asan -DFOREBAY_FUZZ=ON -DFOREBAY_FUZZ_SECONDS=2
  build asan room_tests fuzz_targets
}

# And what the Python package does with memory.
asan() {
  build_asan
  run_tests asan -L '^(unit|threads|fuzz)$'
  scripts/python-asan.sh
}

# The rooms where threads of one process meet; `make test-full` has all programs that start some.
threaded=(core storage comm exchange sync read loader)

build_tsan() {
  prepare tsan
  build tsan "${threaded[@]/%/_test}"
}

# All of it has run under the address sanitizer: what draws its cases draws a third of them here, and what
# knows no threads, or counts numbers more than it lets threads meet, is left out.
tsan() {
  build_tsan
  local numbers="Permutation.*:Half.*:Combine.*:Plan.*:PlanProperty.*:DeviceSum.*:*WireFormats.*:*Deterministic.*"
  FOREBAY_TEST_SCALE=0.3 GTEST_FILTER="-$numbers:Summation.Of*:Summation.Sixteen*" \
    run_tests tsan -R "^($(IFS='|'; echo "${threaded[*]}"))\\."
}

# Both sanitizers, compiled by cores that nobody else wants.
sanitizers() {
  (renice -n 19 -p "$BASHPID" && build_asan && build_tsan) >build/sanitizers.log 2>&1 || true
  run_stage asan asan
  run_stage tsan tsan
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

if [ "${1:-}" = sanitizers ]; then
  sanitizers
  exit
fi

# Tests under a launcher mostly wait, so the sanitizers' run meanwhile where they can have a /dev/shm
# of their own: some look for what is left there.
mkdir -p build
rm -f build/{asan,tsan}.{log,status}
beside=""
trap '[ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true' EXIT
if unshare --mount true 2>/dev/null; then
  set -m # a process group to end, but no session: each would get as much of the cores as all others
  unshare --mount sh -c 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec scripts/test.sh sanitizers' \
    >build/beside.log 2>&1 &
  beside=$!
  set +m
fi
stage release release
stage python python_package
if [ -n "$beside" ]; then
  wait "$beside" || true
  cat build/beside.log
else
  sanitizers
fi
count_stage asan
count_stage tsan
finish
