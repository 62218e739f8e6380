#!/usr/bin/python3
"""Nodes with a network between them on one machine: runs an MPI command over TCP on them.

  bench/network_nodes.py --rate 10gbit -- build/release/tests/mpi/mpi_exchange_test
  bench/network_nodes.py --mpi mpich -- build/release/bench/exchange_bench-mpich --parts latency

Every node n0, n1, ... has a host name, a network name space and a /dev/shm of its own, and one link
(veth) to a common bridge; --rate limits what a node sends. Processor, memory and kernel are common,
and a link adds no latency of its own. Open MPI sends messages by itself (ob1) and reads windows
through UCX; with --windows no it has none, as where nothing is set. MPICH does both through UCX.

Needs root, and ip and tc (iproute2). Nothing stays behind, whatever happens: the network and all
processes live in name spaces that end with the command. The exit status is the launcher's; 124 after
--timeout, 143 after SIGTERM.
"""

import os
import shutil
import signal
import subprocess
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(_HERE, "pfs"))
import nodes  # noqa: E402

_TIMEOUT_STATUS = 124
_MOST_NODES = 1000
RATES = "none, or as tc writes it: 10gbit, 1gbit"


def require():
    """Raises NodesError where no nodes can be made."""
    if os.geteuid() != 0:
        raise nodes.NodesError("name spaces and links need root")
    for program in ("ip", "tc", "unshare"):
        if shutil.which(program) is None:
            raise nodes.NodesError(f"the program {program} is missing; install iproute2 and "
                                   "util-linux")


def _over_tcp(mpi, windows):
    """(words for mpirun, environment): MPI over TCP alone, at its own pace."""
    ucx = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "UCX_LOG_FILE": "stderr"}
    if mpi == "mpich":
        return [], ucx
    if not windows:
        return ["--mca", "pml", "ob1"], {}
    ucx["UCX_KEEPALIVE_INTERVAL"] = "inf"  # or windows between nodes fail
    exported = [word for name in ucx for word in ("-x", name)]
    return ["--mca", "pml", "ob1", "--mca", "osc", "ucx,sm", *exported], ucx


def command_line(command, *, mpi="openmpi", count=2, ranks_per_node=1, rate="none", windows=True):
    """(words, environment) that run `command` on `count` nodes which are there for it alone."""
    hosts = [f"n{i}" for i in range(count)]
    words, variables = nodes.launcher(mpi, hosts, ranks_per_node,
                                      agent=os.path.join(_HERE, "network_agent.sh"), own="bridge",
                                      network="10.77.0.0/16")
    options, more = _over_tcp(mpi, windows)
    return (["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
             "--", os.path.join(_HERE, "network_up.sh"), str(count), rate,
             *words, *options, *command],
            {**os.environ, **variables, **more})


def start(command, *, capture=False, **options):
    """A Popen of command_line(). Killing it while that runs ends all of it; so does our own end."""
    require()
    words, environment = command_line(command, **options)
    pipe = subprocess.PIPE if capture else None
    return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=pipe,
                            stderr=pipe, text=True, start_new_session=True,
                            preexec_fn=nodes.die_with_parent(signal.SIGKILL))


def parse_arguments():
    parser = nodes.argument_parser(__doc__)
    parser.add_argument("--rate", default="none", help=RATES)
    parser.add_argument("--windows", default="yes", choices=("yes", "no"), help="of Open MPI")
    parser.add_argument("command", nargs="+", help="after --")
    arguments = parser.parse_args()
    if not 1 <= arguments.nodes <= _MOST_NODES:
        parser.error(f"--nodes: 1 to {_MOST_NODES}")
    return arguments


def main():
    arguments = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        nodes.end_by_exception(number)
    try:
        job = start(arguments.command, mpi=arguments.mpi, count=arguments.nodes,
                    ranks_per_node=arguments.ranks_per_node, rate=arguments.rate,
                    windows=arguments.windows == "yes")
    except nodes.NodesError as error:
        sys.exit(f"network_nodes.py: {error}")
    try:
        status = job.wait(arguments.timeout)
    except subprocess.TimeoutExpired:
        print(f"network_nodes.py: killed after {arguments.timeout:g} s", file=sys.stderr)
        status = _TIMEOUT_STATUS
    finally:
        job.kill()
        job.wait()
    sys.exit(status)


if __name__ == "__main__":
    main()
