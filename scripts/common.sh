# Shared by the scripts: `. scripts/common.sh` from the root of the repository.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}"
export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$jobs}"

# Most rooms compile to the same objects for both MPI flavours: let ccache see that.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1

# configure PRESET [cmake option...]: quiet unless it fails.
configure() {
  local output
  if ! output=$(cmake --preset "$@" 2>&1); then
    printf '%s\n' "$output" >&2
    return 1
  fi
}

# build PRESET [target...]: everything, or these targets.
build() {
  local preset=$1
  shift
  if [ $# -gt 0 ]; then
    cmake --build "build/$preset" --target "$@"
  else
    cmake --build "build/$preset"
  fi
}

# seconds_since START_SECONDS
seconds_since() { echo $(($(date +%s) - $1)); }
