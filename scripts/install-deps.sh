#!/bin/sh
# Installs everything that Forebay needs, on Debian 12.
# Does nothing when all of it is there; needs root or sudo otherwise. Arguments: packages besides.
set -eu

# One line a purpose: tools, MPI (both flavours), libraries, tests, training and demo, the modelled
# file system of the benchmarks, reports, the Python package with what its users have beside it.
packages="
  g++ make cmake ninja-build pkg-config ccache git
  openmpi-bin libopenmpi-dev mpich libmpich-dev
  liblmdb-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libhwloc-dev libxxhash-dev
  zlib1g-dev libzstd-dev liburing-dev libhdf5-dev libaec-dev protobuf-compiler libprotobuf-dev libjpeg-dev libpng-dev
  libgtest-dev libgmock-dev libbenchmark-dev strace lmdb-utils
  clang libclang-rt-dev clang-format clang-tidy
  libtorch-dev libopenblas0-openmp dataset-fashion-mnist
  libfuse3-dev fuse3
  python3 python3-numpy python3-h5py python3-matplotlib
  python3-dev python3-venv python3-pip python3-torch python3-lmdb python3-mpi4py python3-pil
  python3-pytest
"

is_installed() {
  dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

missing=""
for package in $packages "$@"; do
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
