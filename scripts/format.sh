#!/usr/bin/env bash
# Lays out all C++ sources by .clang-format: `make format`.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
git ls-files '*.cc' '*.hpp' | xargs clang-format -i
