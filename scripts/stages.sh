# Test stages: each builds and tests one configuration, and the last lines sum them up.
# `. scripts/stages.sh` after scripts/common.sh; then `stage PRESET FUNCTION` and `finish`.
# shellcheck shell=bash

stage_lines=""
tests_total=0
tests_failed=0
stages_failed=0
failed_names=""

# "97% tests passed, 3 tests failed out of 112" -> adds 112 and 3.
count_tests() {
  local failed total
  while read -r failed total; do
    tests_failed=$((tests_failed + failed))
    tests_total=$((tests_total + total))
  done < <(sed -nE 's/.*tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$1")
}

# pytest's last line, "2 failed, 85 passed, 1 warning in 57.59s" -> adds 87 and 2.
count_pytest() {
  local line failed passed
  while read -r line; do
    failed=$(sed -nE 's/.*[^0-9]?([0-9]+) (failed|errors?).*/\1/p' <<<"$line")
    passed=$(sed -nE 's/(.*[^0-9])?([0-9]+) passed.*/\2/p' <<<"$line")
    tests_failed=$((tests_failed + ${failed:-0}))
    tests_total=$((tests_total + ${failed:-0} + ${passed:-0}))
  done < <(grep -E '^[0-9]+ (passed|failed|errors?).* in [0-9.]+s' "$1" || true)
}

# Where FOREBAY_TEST_PROGRAMS made one ctest case of a program, or of a part of it, its own cases count:
# `count_cases DIR` with the XML files that GoogleTest has written for those that came to their end.
count_cases() {
  local file total failed disabled
  for file in "$1"/*.xml; do
    [ -e "$file" ] || continue
    read -r total failed disabled < <(sed -nE \
      's/^<testsuites tests="([0-9]+)" failures="([0-9]+)" disabled="([0-9]+)".*/\1 \2 \3/p' "$file")
    tests_total=$((tests_total + total - disabled - 1))
    tests_failed=$((tests_failed + failed))
    # ctest has counted the program (or its part) once.
    if [ "$failed" -gt 0 ]; then tests_failed=$((tests_failed - 1)); fi
  done
}

# ctest does not see which cases a whole program has skipped: `tell_skipped DIR` with the same files.
tell_skipped() {
  [ -d "$1" ] || return 0
  find "$1" -name '*.xml' -exec sed -nE \
    's/.*<testcase name="([^"]*)".* result="skipped".* classname="([^"]*)".*/skipped: \2.\1/p' {} +
}

# The names of what failed: in ctest's own list, "	1801 - mpi.exchange_4x2 (Failed)", and among the
# cases of a whole program, "[  FAILED  ] Suite.Case (3 ms)".
failed_in() {
  local names="s/^\t *[0-9]+ - (.*)/$2: \1/p"
  if [ -d "build/$2/test_cases" ]; then
    names+="; s/^\[  FAILED  \] (.*) \([0-9]+ ms\)$/$2: \1/p"
  fi
  sed -nE "$names" "$1"
  sed -nE "s/^FAILED ([^ ]+).*/$2: \1/p" "$1"
}

# `run_stage NAME FUNCTION`, in a subshell of its own; a failing stage does not keep the others from
# running. What it prints and how it ended is also kept, for `count_stage NAME`.
run_stage() {
  local name=$1 function=$2 start status=0
  start=$(date +%s)
  rm -rf "build/$name/test_cases" "build/$name.status"
  mkdir -p build
  printf '\n=== %s ===\n' "$name"
  # Not `if (...)`: inside a condition the shell would ignore `set -e`.
  set +e
  (set -e; "$function") 2>&1 | tee "build/$name.log"
  status=${PIPESTATUS[0]}
  set -e
  echo "$status $(seconds_since "$start")" >"build/$name.status"
}

count_stage() {
  local name=$1 log=build/$1.log status=1 seconds=0 verdict=passed failed_before=$tests_failed
  touch "$log" "build/$name.status"  # of one that was ended before
  read -r status seconds <"build/$name.status" || true
  count_tests "$log"
  count_pytest "$log"
  count_cases "build/$name/test_cases"
  tell_skipped "build/$name/test_cases"
  failed_names+=$(failed_in "$log" "$name")
  failed_names=${failed_names:+${failed_names%$'\n'}$'\n'}
  if [ "$status" -ne 0 ]; then
    verdict=FAILED
    stages_failed=$((stages_failed + 1))
  fi
  # A stage that fails before its tests, in the build for one, must not pass for a clean sheet.
  if [ "$status" -ne 0 ] && [ "$tests_failed" -eq "$failed_before" ]; then
    tests_failed=$((tests_failed + 1))
    tests_total=$((tests_total + 1))
  fi
  stage_lines+=$(printf '%-14s %-7s %5s s' "$name" "$verdict" "$seconds")$'\n'
  printf -- '--- %s %s after %s s ---\n' "$name" "$verdict" "$seconds"
}

stage() {
  run_stage "$@"
  count_stage "$1"
}

# Prints the table and, last, one line in ctest's own words for all stages together.
finish() {
  printf '\n%s\n' "$stage_lines"
  local passed=$((tests_total - tests_failed)) percent=0
  if [ "$tests_total" -gt 0 ]; then percent=$((100 * passed / tests_total)); fi
  if [ "$stages_failed" -gt 0 ]; then
    printf '%s%s stages FAILED\n' "$failed_names" "$stages_failed"
  fi
  printf '%s%% tests passed, %s tests failed out of %s\n' "$percent" "$tests_failed" "$tests_total"
  [ "$stages_failed" -eq 0 ] && [ "$tests_failed" -eq 0 ] && [ "$tests_total" -gt 0 ]
}
