#!/bin/sh
# Builds what the benchmarks need, measures, and draws the report: what `make bench` calls.
#
#   bench/run.sh [BUILD_DIRECTORY] [options of run_matrix.py...]
#
# FOREBAY_BENCH_DATA says where the data sets lie (default: BUILD_DIRECTORY/bench/data).
set -eu

build=build/release
if [ $# -gt 0 ] && [ -d "$1" ]; then
  build=$1
  shift
fi
root=$(dirname "$(dirname "$(readlink -f "$0")")")

cmake --build "$build" --target forebay-cli forebay-bench
# Not everywhere: without LibTorch there is no trainer, without libfuse3 no modelled file system.
for target in forebay-train forebay-pfs; do
  if cmake --build "$build" --target help | grep -q "^$target:"; then
    cmake --build "$build" --target "$target"
  fi
done
# Debian's own Python has matplotlib, whatever else comes first on the path.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
results=$build/bench/results.json
status=0
"$python" -B "$root/bench/run_matrix.py" --build "$build" \
  --data "${FOREBAY_BENCH_DATA:-$build/bench/data}" --output "$results" "$@" || status=$?
if [ -e "$results" ]; then "$build/bench/forebay-bench" report "$results"; fi
exit "$status"
