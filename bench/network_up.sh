#!/bin/bash
# `network_up.sh NODES RATE COMMAND...`: connects nodes n0, n1, ... of network_nodes.py to a bridge
# and runs COMMAND beside it. To be called in name spaces of its own (network, mounts, processes),
# which take all of it along when they end.
#
# RATE limits what each node sends, as tc writes it ("10gbit"); "none" does not.
set -eu

nodes=$1 rate=$2
shift 2

mount -t tmpfs tmpfs /run # where ip keeps the names of network name spaces
mkdir /run/netns
ip link set lo up
ip link add bridge type bridge
ip address add 10.77.255.254/16 dev bridge
ip link set bridge up
for ((node = 0; node < nodes; ++node)); do
  ip netns add "n$node"
  ip link add "to-n$node" type veth peer name eth0 netns "n$node"
  ip link set "to-n$node" master bridge up
  ip -netns "n$node" link set lo up
  ip -netns "n$node" address add "10.77.$((node / 250)).$((node % 250 + 1))/16" dev eth0
  ip -netns "n$node" link set eth0 up
  if [[ $rate != none ]]; then
    # Bursts of 1 MB: what goes out in a few timer ticks at 10 Gbit/s.
    tc -netns "n$node" qdisc add dev eth0 root tbf rate "$rate" burst 1mb latency 50ms
  fi
done

"$@" # as a child: this shell is process 1, and reaps what is left
