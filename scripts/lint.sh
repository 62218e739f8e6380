#!/usr/bin/env bash
# Style and static checks: `make lint`. Changes nothing; `make format` repairs the layout.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

sources() { git ls-files '*.cc' '*.hpp'; }

check_format() {
  sources | xargs clang-format --dry-run -Werror
}

check_includes() {
  /usr/bin/env python3 scripts/check_includes.py
}

check_scripts() {
  if command -v shellcheck >/dev/null 2>&1; then
    git ls-files '*.sh' .ci/run | xargs shellcheck -x
  fi
}

# The compile commands come from a build directory of its own, without LibTorch: its headers alone
# take longer than everything else together.
check_tidy() {
  cmake -S . -B build/lint -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DFOREBAY_TRAIN=OFF -DFOREBAY_TESTS=OFF -DFOREBAY_BENCH=ON -DFOREBAY_PFS=OFF >/dev/null
  git ls-files 'src/*.cc' 'bench/command/*.cc' | grep -F -f <(compiled_files) |
    xargs -P "$jobs" -n 1 clang-tidy -p build/lint --quiet --warnings-as-errors='*' 2> >(
      grep -v -E 'warnings? generated|^Suppressed|^Use -header-filter' >&2 || true)
}

compiled_files() {
  sed -nE 's/^ *"file": ".*\/((src|bench\/command)\/.*\.cc)".*/\1/p' build/lint/compile_commands.json
}

for check in check_format check_includes check_scripts check_tidy; do
  start=$(date +%s)
  if ! "$check"; then
    echo "lint: $check failed" >&2
    exit 1
  fi
  echo "lint: $check passed ($(seconds_since "$start") s)"
done
