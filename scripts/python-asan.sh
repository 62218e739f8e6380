#!/usr/bin/env bash
# The Python package under the address sanitizer, built by the preset `asan`, whose objects it shares, in
# an interpreter that knows nothing of sanitizers: their library is loaded in front of everything else.
# Called by scripts/test.sh, with the tests of memory, and by scripts/test-full.sh, with all of them.
# `scripts/python-asan.sh [pytest argument...]`, from tests/python; without any: test_memory.py
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

venv=$PWD/build/venv-asan
python=$venv/bin/python
targets=(forebay_python)
if [ $# -gt 0 ]; then targets+=(forebay-cli); else set -- test_memory.py; fi

if [ ! -x "$python" ]; then
  /usr/bin/python3 -m venv --system-site-packages "$venv"
  "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: nanobind==3.1.0
fi
# Its tests, fuzz targets and ways to compile are whoever's who has configured the folder before.
options=(-DFOREBAY_PYTHON=ON -DFOREBAY_TENSORFLOW=OFF -DPython_EXECUTABLE="$python")
if [ -e build/asan/CMakeCache.txt ]; then
  cmake -S . -B build/asan "${options[@]}" >/dev/null  # the preset would set other flags: all anew
else
  configure asan "${options[@]}"
fi
build asan "${targets[@]}"

# The command has the library of the sanitizer in itself, and must not meet another.
mkdir -p build/asan/python-bin
cat >build/asan/python-bin/forebay <<END
#!/bin/sh
exec env -u LD_PRELOAD "$PWD/build/asan/src/forebay" "\$@"
END
# Nor the launcher: Open MPI's reads what it has freed when a rank aborts the job.
cat >build/asan/python-bin/mpirun.openmpi <<END
#!/bin/sh
preload=\$LD_PRELOAD
unset LD_PRELOAD
exec $(command -v mpirun.openmpi) -x "LD_PRELOAD=\$preload" "\$@"
END
chmod +x build/asan/python-bin/*

# Python does not load the library of C++ by itself, and the sanitizer wants to find it at the start. MPI
# and Python leak; our `mmap` engine has a handler of its own for SIGBUS; torch is patient with sizes.
runtime=$(clang -print-file-name=libclang_rt.asan-x86_64.so)
if [ ! -e "$runtime" ]; then runtime=$(clang -print-file-name=libclang_rt.asan-"$(uname -m)".so); fi
LD_PRELOAD="$runtime $(clang -print-file-name=libstdc++.so.6)"
export LD_PRELOAD
export ASAN_OPTIONS="detect_leaks=0:handle_sigbus=0:allocator_may_return_null=1:abort_on_error=1"
export UBSAN_OPTIONS=print_stacktrace=1
export PYTHONPATH=$PWD/build/asan/python PYTHONFAULTHANDLER=1 PATH="$PWD/build/asan/python-bin:$venv/bin:$PATH"
cd tests/python
exec timeout 5400 "$python" -m pytest -q -p no:cacheprovider --color=no "$@"
