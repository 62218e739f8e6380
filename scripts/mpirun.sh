#!/bin/sh
# Starts an MPI program on this machine with either flavour, with more ranks than cores if need be.
#
#   scripts/mpirun.sh openmpi 4 build/release/src/forebay samples data --batch 16
#
# MPIRUN_ARGS in the environment adds options of the launcher itself; FOREBAY_MPI_LAUNCHER names that, if
# it is not to be looked for. The exit status is the launcher's.
set -eu

usage() {
  echo "usage: scripts/mpirun.sh openmpi|mpich|abi RANKS COMMAND [ARGUMENT...]" >&2
  exit 2
}

[ $# -ge 3 ] || usage
flavour=$1
ranks=$2
shift 2

# Debian installs both flavours side by side under suffixed names; elsewhere there is only one.
launcher=${FOREBAY_MPI_LAUNCHER:-}
if [ -z "$launcher" ]; then
  launcher=mpirun
  if command -v "mpirun.$flavour" >/dev/null 2>&1; then launcher="mpirun.$flavour"; fi
fi

case $flavour in
  openmpi)
    # Open MPI refuses root and, beyond the number of cores, pins and spins unless told otherwise.
    if [ "$(id -u)" -eq 0 ]; then
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    # shellcheck disable=SC2086 # MPIRUN_ARGS is a list of words
    exec "$launcher" -n "$ranks" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
      ${MPIRUN_ARGS:-} "$@"
    ;;
  mpich | abi) # MPICH 5 is what has the standard ABI so far
    # A thousand times slower without: a waiting rank would keep the core that its peer needs.
    export MPIR_CVAR_POLLS_BEFORE_YIELD="${MPIR_CVAR_POLLS_BEFORE_YIELD:-1}"
    # UCX, on which it may stand, would log to standard output, between the data.
    export UCX_LOG_FILE="${UCX_LOG_FILE:-stderr}"
    # shellcheck disable=SC2086
    exec "$launcher" -n "$ranks" ${MPIRUN_ARGS:-} "$@"
    ;;
  *) usage ;;
esac
