#!/bin/sh
# timeout_test.sh "EXIT CODES" COMMAND...: the command ends with one of the codes, and at least one
# rank has told that it timed out, and none that it failed otherwise.
codes=$1
shift
output=$(timeout 60 "$@")
status=$?
printf '%s\nexit status %s\n' "$output" "$status"
case " $codes " in
*" $status "*) ;;
*) exit 1 ;;
esac
printf '%s\n' "$output" | grep -q 'timed out: ' && ! printf '%s\n' "$output" | grep -q 'failed: '
