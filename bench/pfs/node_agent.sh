#!/bin/bash
# What mpirun calls instead of ssh, as `node_agent.sh [OPTION...] HOST COMMAND...`: makes this process
# and its children the virtual node HOST of nodes.py, and runs COMMAND there.
#
# A node has a host name, so that MPI keeps it apart; its own mount of the file system and its own
# TMPDIR, at the same paths as on all nodes; its own /dev/shm; and, where asked for, a memory
# control group. FOREBAY_NODES is the working directory of nodes.py, FOREBAY_NODES_GROUPS the parent
# of the groups or empty.
set -eu

while [[ $1 == -* ]]; do shift; done
host=$1
shift

if [[ -n ${FOREBAY_NODES_GROUPS:-} ]]; then
  echo 0 >"$FOREBAY_NODES_GROUPS/$host/cgroup.procs" # 0: the process that writes
fi

# Not --ipc: MPICH programs with threads then hang in MPI_Finalize.
# shellcheck disable=SC2016 # expanded inside
exec unshare --uts --mount bash -c '
  set -eu
  hostname "$1"
  mount --bind "$FOREBAY_NODES/mounts/$1" "$FOREBAY_NODES/data"
  mount --bind "$FOREBAY_NODES/temporary/$1" "$TMPDIR"
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  exec bash -c "$2"' node_agent "$host" "$*"
