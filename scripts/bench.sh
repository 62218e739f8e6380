#!/usr/bin/env bash
# The benchmarks: `make bench`. Results with plots go to docs/results.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

configure release
exec bench/run.sh build/release "$@"
