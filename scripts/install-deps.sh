#!/bin/sh
# Installs what Forebay needs, on Debian 12: `scripts/install-deps.sh [--for GROUP...] [PACKAGE...]`
# Everything without --for; a GROUP is one of those below. Other arguments are packages besides.
# Does nothing when all of it is there; needs root or sudo otherwise.
set -eu

# The library and the command, on Open MPI, for data sets in LMDB; and what they build with.
lmdb="
  g++ make cmake ninja-build pkg-config python3 openmpi-bin libopenmpi-dev
  liblmdb-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libhwloc-dev libxxhash-dev
  zlib1g-dev libdeflate-dev libzstd-dev liburing-dev libjpeg-dev libpng-dev
"
# All data sets.
library="$lmdb libhdf5-dev libaec-dev libwebp-dev libtiff-dev libgif-dev"
# The reference trainer; what the demo trains on, and the modelled file system that it reads from.
trainer="libtorch-dev libopenblas0-openmp dataset-fashion-mnist libfuse3-dev"
# `pip install .`
pip="python3-dev python3-venv python3-pip"
# `make test`, `make bench`, `make lint`. One line a purpose: tools, the other MPI, tests and their
# oracles, sanitizers and checks, mounts by other users, reports, the Python package with what its
# users have beside it.
all="
  $library $trainer $pip ccache git
  mpich libmpich-dev
  libgtest-dev libgmock-dev libbenchmark-dev strace lmdb-utils protobuf-compiler libprotobuf-dev
  clang libclang-rt-dev clang-format clang-tidy lld
  fuse3
  python3-matplotlib
  python3-numpy python3-h5py python3-torch python3-lmdb python3-mpi4py python3-pil python3-pytest
"

packages=""
while [ "${1:-}" = --for ]; do
  case ${2:-} in
    library) packages="$packages $library" ;;
    demo) packages="$packages $lmdb $trainer" ;;
    python) packages="$packages $library $pip" ;;
    *) echo "install-deps: --for takes library, demo or python" >&2; exit 2 ;;
  esac
  shift 2
done

is_installed() {
  dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

missing=""
for package in ${packages:-$all} "$@"; do
  is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install-deps: these packages are missing; install them as root:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi

echo "install-deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # lists of words
if ! { $as_root apt-get -qq update &&
       $as_root env DEBIAN_FRONTEND=noninteractive \
         apt-get -qq install -y --no-install-recommends $missing; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
