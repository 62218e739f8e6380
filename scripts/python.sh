#!/usr/bin/env bash
# The Python package as users get it: a wheel, installed into a fresh virtual environment beside
# Debian's torch, h5py and py-lmdb, and its tests there; then types and style.
# Called by scripts/test.sh. `scripts/python.sh OPENMPI|MPICH [pytest option...]`
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

flavour=${1:-openmpi}
shift || true
venv=$PWD/build/venv-$flavour
python=$venv/bin/python

# Everything that compiles and checks; nothing of it is needed to use the package. Newer ones may find
# other faults: raise the numbers by hand.
tools="nanobind==3.1.0 scikit-build-core==1.1.2 build==1.6.1 mypy==2.4.1 ruff==0.17.6"

rm -rf "$venv"
/usr/bin/python3 -m venv --system-site-packages "$venv"
# shellcheck disable=SC2086
"$python" -m pip install --quiet --disable-pip-version-check $tools

# In a folder of its own for each flavour; by the compiler and with the options of the other builds,
# whose objects are in the cache.
rm -rf "build/wheels-$flavour"
"$python" -m build --wheel --no-isolation --outdir "build/wheels-$flavour" \
  -C build-dir="build/wheel-$flavour" -C cmake.define.FOREBAY_MPI="$flavour" \
  -C cmake.define.FOREBAY_WERROR=ON \
  -C cmake.define.CMAKE_C_COMPILER=/usr/bin/cc -C cmake.define.CMAKE_CXX_COMPILER=/usr/bin/c++ >"build/wheel-$flavour.log" 2>&1 ||
  { tail -n 60 "build/wheel-$flavour.log" >&2; exit 1; }
"$python" -m pip install --quiet --disable-pip-version-check --no-deps build/wheels-"$flavour"/*.whl

export PATH="$venv/bin:$PATH"
# Not from the root of the repository: what is tested is what was installed.
(cd tests/python && "$python" -m pytest -q -p no:cacheprovider --color=no "$@")
"$venv/bin/mypy" --config-file pyproject.toml --python-executable "$python" -p forebay
"$venv/bin/ruff" check
"$venv/bin/ruff" format --check
