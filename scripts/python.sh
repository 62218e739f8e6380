#!/usr/bin/env bash
# The Python package as users get it: a wheel, installed into a fresh virtual environment beside
# Debian's torch, h5py and py-lmdb, and its tests there; then types and style.
# Called by scripts/test.sh.
# `scripts/python.sh [--tensorflow] [--sdist] [--again] openmpi|mpich [pytest option...]`
#
# The wheel is for both MPIs; the name is that of the launcher under which the tests start ranks.
#
# With --again: tests alone, of the wheel that the last run has made and installed, if there is one.
#
# With --sdist: the wheel is built from the source distribution, which must have what git has and no more.
#
# With --tensorflow: TensorFlow from PyPI instead of Debian's packages, which want an older NumPy; the
# wheel has TensorFlow's operation, and the tests are those of forebay.tf.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

beside=debian
from=tree
again=no
while [[ "${1:-}" == --* ]]; do
  case $1 in
    --tensorflow) beside=tensorflow ;;
    --sdist) from=sdist ;;
    --again) again=yes ;;
    *) echo "there is no option $1" >&2; exit 2 ;;
  esac
  shift
done
export FOREBAY_MPI="${1:-openmpi}"
shift || true
name=package
site=(--system-site-packages)
tests=(.)
typed=forebay
# Everything that compiles and checks; nothing of it is needed to use the package. Newer ones may find
# other faults: raise the numbers by hand.
tools="nanobind==3.1.0 scikit-build-core==1.1.2 build==1.6.1 mypy==2.4.1 ruff==0.17.6"
if [ "$beside" = tensorflow ]; then
  name=tensorflow
  site=()
  typed=forebay.tf  # there is no torch for the types of the others
  tests=(test_tf.py test_examples.py::test_tensorflow_mnist
         test_docs.py::test_every_block_of_the_page_on_tensorflow_runs)
  tools+=" tensorflow-cpu==2.21.0 pytest==9.2.0 lmdb==3.0.0"
fi
venv=$PWD/build/venv-$name
python=$venv/bin/python

make_environment() {
  rm -rf "$venv"
  /usr/bin/python3 -m venv "${site[@]}" "$venv"
  # shellcheck disable=SC2086
  "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: $tools
}

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

make_wheel() {
  local source=. with_operation=OFF
  if [ "$from" = sdist ]; then unpack_sdist "$PWD/build/sdist-$name"; fi
  # In a folder of its own for each kind; by the compiler and with the options of the other builds,
  # whose objects are in the cache.
  rm -rf "build/wheels-$name"
  if [ "$beside" = tensorflow ]; then with_operation=ON; fi
  "$python" -m build --wheel --no-isolation --outdir "build/wheels-$name" "$source" \
    -C build-dir="build/wheel-$name" \
    -C cmake.define.FOREBAY_TENSORFLOW="$with_operation" -C cmake.define.FOREBAY_WERROR=ON \
    -C cmake.define.CMAKE_C_COMPILER=/usr/bin/cc -C cmake.define.CMAKE_CXX_COMPILER=/usr/bin/c++ >"build/wheel-$name.log" 2>&1 ||
    { tail -n 60 "build/wheel-$name.log" >&2; exit 1; }
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps build/wheels-"$name"/*.whl
}

if [ "$again" = no ] || [ ! -x "$python" ]; then
  make_environment
  make_wheel
fi

export PATH="$venv/bin:$PATH"
# Not from the root of the repository: what is tested is what was installed.
(cd tests/python && "$python" -m pytest -q -p no:cacheprovider --color=no "$@" "${tests[@]}")
"$venv/bin/mypy" --config-file pyproject.toml --python-executable "$python" -p "$typed"
"$venv/bin/ruff" check
"$venv/bin/ruff" format --check
