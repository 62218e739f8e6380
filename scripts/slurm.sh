#!/usr/bin/env bash
# Runs a command beside a Slurm cluster of one node, this machine, that lives as long as the command:
#
#   scripts/slurm.sh srun --mpi=pmix -n 2 build/release/src/forebay samples data --batch 16
#
# The daemons are those of Debian's slurm-wlm and munge, as the user who calls, in a temporary folder:
# no service is started, no file of /etc read or written, no control group needed. The exit status is
# the command's; 77 where Slurm is not installed or does not start, with the reason.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: scripts/slurm.sh COMMAND [ARGUMENT...]" >&2; exit 2; }

refuse() {
  echo "slurm: $1" >&2
  exit 77
}

# Daemons lie in sbin, which users often have not in their path.
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun; do
  command -v "$program" >/dev/null || refuse "$program is not installed: apt-get install slurm-wlm munge"
done

folder=$(mktemp -d)
chmod 755 "$folder" # munged wants its socket where everybody may look
mkdir "$folder/state" "$folder/spool"
daemons=()

# shellcheck disable=SC2317 # called by the trap
end() {
  local pid
  # Not to leave a step behind, which would go on without its daemons.
  if [ "${ready:-}" ]; then
    scancel --user="$user" 2>/dev/null || true
    # shellcheck disable=SC2016 # expanded at each try
    within 10 eval '[ -z "$(squeue --noheader)" ]' || true
  fi
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap end EXIT
trap 'exit 143' TERM INT

# start PROGRAM [ARGUMENT...]: in the foreground of its own, so that it ends with us.
start() {
  "$@" >>"$folder/$1.out" 2>&1 &
  daemons+=($!)
}

# within SECONDS COMMAND...: until it succeeds.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}

explain() {
  tail -v -n 20 "$folder"/*.log "$folder"/*.out >&2
  refuse "$1"
}

# Two ports that nobody has; between finding and binding them somebody might, which shows as a failure.
read -r controller_port node_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[each.getsockname()[1] for each in sockets])')

(umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
host=$(hostname -s)
user=$(id -un)
cat >"$folder/slurm.conf" <<CONF
ClusterName=forebay
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller_port
SlurmdPort=$node_port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
# More processors than there are: ranks may be more than cores.
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES OverSubscribe=FORCE:16 State=UP
CONF
export SLURM_CONF=$folder/slurm.conf

start munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
  --log-file="$folder/munged.log" --pid-file="$folder/munged.pid" --seed-file="$folder/munged.seed"
within 20 test -S "$folder/munge.socket" || explain "munged does not start"
start slurmctld -D
start slurmd -D
# The first job waits until the node has reported.
within 30 timeout 10 srun --mpi=none -n 1 true || explain "the node takes no job"
ready=yes

status=0
"$@" || status=$?
exit "$status"
