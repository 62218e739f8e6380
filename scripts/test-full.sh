#!/usr/bin/env bash
# The long tests: `make test-full`. Everything on both MPI flavours, what needs no launcher under the
# sanitizers, twenty times the random cases, ten minutes of each fuzz target, and twenty of the soak
# (tests/chaos). Takes hours on 2 cores. `scripts/test-full.sh [STAGE...]` runs some of its stages.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/stages.sh
. scripts/stages.sh

export FOREBAY_TEST_SCALE="${FOREBAY_TEST_SCALE:-20}"
fuzz_seconds="${FOREBAY_FUZZ_SECONDS:-600}"
timeout_seconds=7200
# What `make test` compiles in groups and runs as whole programs (scripts/test.sh), here each by itself.
# Limits grow with the number of cases: ctest's --timeout is only for tests that have none of their own.
one_by_one=(-DFOREBAY_UNITY=OFF -DFOREBAY_TEST_PROGRAMS=OFF
            -DFOREBAY_TEST_PATIENCE="$FOREBAY_TEST_SCALE")

# everything PRESET [cmake option...]
everything() {
  configure "$@" "${one_by_one[@]}"
  build "$1"
  ctest --test-dir "build/$1" --output-on-failure --timeout "$timeout_seconds"
}

release() { everything release; }

# Without what runs under the launcher, as the preset has it: the MPI libraries leak.
asan() {
  configure asan "${one_by_one[@]}"
  build asan local_tests
  ctest --preset asan --timeout "$timeout_seconds"
}

# All tests of the Python package, on ranks as well, but for those of pages and examples, which run other
# programs, those that measure memory, as the sanitizer keeps what is freed, and those that fork: that of
# clang 14 lets a child wait for a lock of its allocator that another thread had in that moment.
python_asan() {
  scripts/python-asan.sh . --ignore test_docs.py --ignore test_examples.py --ignore test_slurm.py \
    -k "not fork and not workers and not memory_stays and not leaves_no_memory"
}

tsan() {
  configure tsan "${one_by_one[@]}"
  build tsan thread_tests
  ctest --preset tsan --timeout "$timeout_seconds"
}

fuzz() {
  configure fuzz -DFOREBAY_FUZZ_SECONDS="$fuzz_seconds"
  build fuzz fuzz_targets
  ctest --preset fuzz
}

# With Slurm, so that no test of srun is skipped.
python_package() {
  scripts/install-deps.sh slurm-wlm munge
  scripts/python.sh --sdist openmpi
  scripts/docs.sh
}

python_mpich() { scripts/python.sh --again mpich; }

python_tensorflow() { scripts/python.sh --tensorflow openmpi; }

# Loops in Python run in the environment that the stage of the Python package has made.
chaos() {
  build release forebay-cli forebay-pfs
  FOREBAY_COMMAND=build/release/src/forebay FOREBAY_PYTHON="$PWD/build/venv-package/bin/python" \
    tests/chaos/chaos.py --minutes "${FOREBAY_CHAOS_MINUTES:-20}"
}

# In this order: `chaos` and `python-mpich` want what `python` has made.
if [ $# -eq 0 ]; then
  set -- release python chaos python-mpich python-tf asan python-asan tsan fuzz
fi
declare -A stages=([release]=release [python]=python_package [chaos]=chaos [python-mpich]=python_mpich
                   [python-tf]=python_tensorflow [asan]=asan [python-asan]=python_asan [tsan]=tsan [fuzz]=fuzz)
for name; do
  [ -n "${stages[$name]:-}" ] || { echo "there is no stage $name, but ${!stages[*]}" >&2; exit 2; }
done
for name; do stage "$name" "${stages[$name]}"; done
finish
