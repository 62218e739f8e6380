#!/usr/bin/env bash
# The Python package as users get it: a wheel, installed into a fresh virtual environment beside
# Debian's torch, h5py and py-lmdb, and its tests there; then types and style.
# Called by scripts/test.sh.
# `scripts/python.sh [--tensorflow] [--sdist] openmpi|mpich [pytest option...]`
#
# With --sdist: the wheel is built from the source distribution, which must have what git has and no more.
#
# With --tensorflow: TensorFlow from PyPI instead of Debian's packages, which want an older NumPy; the
# wheel has TensorFlow's operation, and the tests are those of forebay.tf.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

beside=debian
from=tree
while [[ "${1:-}" == --* ]]; do
  case $1 in
    --tensorflow) beside=tensorflow ;;
    --sdist) from=sdist ;;
    *) echo "there is no option $1" >&2; exit 2 ;;
  esac
  shift
done
flavour=${1:-openmpi}
shift || true
name=$flavour
site=(--system-site-packages)
tests=(.)
typed=forebay
# Everything that compiles and checks; nothing of it is needed to use the package. Newer ones may find
# other faults: raise the numbers by hand.
tools="nanobind==3.1.0 scikit-build-core==1.1.2 build==1.6.1 mypy==2.4.1 ruff==0.17.6"
if [ "$beside" = tensorflow ]; then
  name=$flavour-tensorflow
  site=()
  typed=forebay.tf  # there is no torch for the types of the others
  tests=(test_tf.py test_examples.py::test_tensorflow_mnist
         test_docs.py::test_every_block_of_the_page_on_tensorflow_runs)
  tools+=" tensorflow-cpu==2.21.0 pytest==9.2.0 lmdb==3.0.0"
fi
venv=$PWD/build/venv-$name
python=$venv/bin/python

rm -rf "$venv"
/usr/bin/python3 -m venv "${site[@]}" "$venv"
# shellcheck disable=SC2086
"$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: $tools

# unpack_sdist FOLDER: makes the source distribution, looks for files that git does not know, and leaves
# in `source` where it was unpacked: as deep inside of the tree as the compiler cache needs it.
unpack_sdist() {
  rm -rf "$1"
  "$python" -m build --sdist --no-isolation --outdir "$1" >"$1.log" 2>&1 ||
    { tail -n 60 "$1.log" >&2; exit 1; }
  tar -xzf "$1"/*.tar.gz -C "$1"
  source=$(echo "$1"/*/)
  local junk
  junk=$(comm -13 <(git ls-files | sort) <(cd "$source" && find . -type f -printf '%P\n' | sort) |
    grep -vx PKG-INFO || true)
  [ -z "$junk" ] || { printf 'the source distribution has what git has not:\n%s\n' "$junk" >&2; exit 1; }
}

source=.
if [ "$from" = sdist ]; then unpack_sdist "$PWD/build/sdist-$name"; fi

# In a folder of its own for each kind; by the compiler and with the options of the other builds,
# whose objects are in the cache.
rm -rf "build/wheels-$name"
with_operation=OFF
if [ "$beside" = tensorflow ]; then with_operation=ON; fi
"$python" -m build --wheel --no-isolation --outdir "build/wheels-$name" "$source" \
  -C build-dir="build/wheel-$name" -C cmake.define.FOREBAY_MPI="$flavour" \
  -C cmake.define.FOREBAY_TENSORFLOW="$with_operation" -C cmake.define.FOREBAY_WERROR=ON \
  -C cmake.define.CMAKE_C_COMPILER=/usr/bin/cc -C cmake.define.CMAKE_CXX_COMPILER=/usr/bin/c++ >"build/wheel-$name.log" 2>&1 ||
  { tail -n 60 "build/wheel-$name.log" >&2; exit 1; }
"$python" -m pip install --quiet --disable-pip-version-check --no-deps build/wheels-"$name"/*.whl

export PATH="$venv/bin:$PATH"
# Not from the root of the repository: what is tested is what was installed.
(cd tests/python && "$python" -m pytest -q -p no:cacheprovider --color=no "$@" "${tests[@]}")
"$venv/bin/mypy" --config-file pyproject.toml --python-executable "$python" -p "$typed"
"$venv/bin/ruff" check
"$venv/bin/ruff" format --check
