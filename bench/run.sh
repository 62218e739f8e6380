#!/bin/sh
# Makes the data set once and measures: what `make bench` calls.
#
#   bench/run.sh [BUILD_DIRECTORY] [options of run_read_bench.py...]
#
# FOREBAY_BENCH_DATA says where the data set of 1.7 GB lies (default: BUILD_DIRECTORY/bench/data).
set -eu

build=build/release
if [ $# -gt 0 ] && [ -d "$1" ]; then
  build=$1
  shift
fi
root=$(dirname "$(dirname "$(readlink -f "$0")")")
data=${FOREBAY_BENCH_DATA:-$build/bench/data}/cifar10-large

cmake --build "$build" --target forebay-cli read_bench plain_read
if [ ! -e "$data/data.mdb" ]; then
  mkdir -p "$(dirname "$data")"
  "$build/src/forebay" pack - "$data" --from synthetic --preset cifar10-large --count 400000
fi
# Debian's own Python has matplotlib, whatever else comes first on the path.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
exec "$python" "$root/bench/run_read_bench.py" "$data" --build "$build" "$@"
