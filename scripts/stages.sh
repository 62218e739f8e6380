# Test stages: each builds and tests one configuration, and the last lines sum them up.
# `. scripts/stages.sh` after scripts/common.sh; then `stage NAME FUNCTION` and `finish`.
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

# Runs FUNCTION in a subshell of its own; a failing stage does not keep the others from running.
stage() {
  local name=$1 function=$2 start log status=0 verdict=passed failed_before=$tests_failed
  start=$(date +%s)
  log=$(mktemp)
  printf '\n=== %s ===\n' "$name"
  # Not `if (...)`: inside a condition the shell would ignore `set -e`.
  set +e
  (set -e; "$function") 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  set -e
  count_tests "$log"
  # ctest's own list of them, "	1801 - mpi.exchange_4x2 (Failed)", told again where it is seen.
  failed_names+=$(sed -nE "s/^\t *[0-9]+ - (.*)/$name: \1/p" "$log")
  failed_names=${failed_names:+${failed_names%$'\n'}$'\n'}
  rm -f "$log"
  if [ "$status" -ne 0 ]; then
    verdict=FAILED
    stages_failed=$((stages_failed + 1))
  fi
  # A stage that fails before its tests, in the build for one, must not pass for a clean sheet.
  if [ "$status" -ne 0 ] && [ "$tests_failed" -eq "$failed_before" ]; then
    tests_failed=$((tests_failed + 1))
    tests_total=$((tests_total + 1))
  fi
  stage_lines+=$(printf '%-14s %-7s %5s s' "$name" "$verdict" "$(seconds_since "$start")")$'\n'
  printf -- '--- %s %s after %s s ---\n' "$name" "$verdict" "$(seconds_since "$start")"
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
