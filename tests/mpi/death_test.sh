#!/bin/sh
# usage: death_test.sh END command...
# The command has to fail by itself within 10 s; with END 'throw', all ranks say what rank 1 said.
end=$1
shift
output=$(timeout 10 "$@" 2>&1)
status=$?
echo "$output"
test $status -ne 0 -a $status -ne 124 || exit 1
test "$end" = throw || exit 0
test "$(echo "$output" | grep -c 'rank [0-9]: .*the training data is gone')" -eq 3
