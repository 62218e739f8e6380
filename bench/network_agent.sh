#!/bin/bash
# What mpirun calls instead of ssh, as `network_agent.sh [OPTION...] HOST COMMAND...`: makes this
# process and its children the node HOST of network_nodes.py, and runs COMMAND there. A node has a
# host name, a network name space and a /dev/shm of its own.
set -eu

while [[ $1 == -* ]]; do shift; done
host=$1
shift

# shellcheck disable=SC2016 # expanded inside
exec ip netns exec "$host" unshare --uts --mount bash -c '
  set -eu
  hostname "$1"
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  exec bash -c "$2"' network_agent "$host" "$*"
