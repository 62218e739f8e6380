#!/usr/bin/env bash
# From a fresh clone to a trained network: `make demo`.
#
# Packs Fashion-MNIST into LMDB, trains LeNet on 4 ranks twice, reading with the baseline (lmdb) and
# with what `auto` chooses, and shows where the time went. Each run finds the data cold, in a place
# where every request waits for its answer, as at another site (bench/pfs): the baseline's many small
# ones in turn, those of `auto` together and ahead. How data are read must not change what is
# computed, so both runs have to log the same losses, digit by digit. Gradients are summed while the
# backward pass goes on (--sync scp-topo), in several transfers. Everything lands in demo/.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

ranks=4
epochs=3
goal=0.88
source_data=/usr/share/datasets/fashion-mnist
forebay=build/demo/src/forebay
pfs=build/demo/bench/pfs/forebay-pfs
# What a page fault asks for, and how long any request waits.
slowness=(--read-ahead-kb 16 --latency 30ms)

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "demo: $*" >&2
  exit 1
}

pack() { # pack SPLIT
  "$forebay" pack "$source_data" "demo/$1.lmdb" --from idx --split "$1" --force
}

# mount_slow: demo/train.lmdb behind a mount for each run, with a page cache of its own, in `slow`.
mount_slow() {
  slow=$(mktemp -d demo/slow-XXXXXX)
  trap unmount_slow EXIT
  mkdir "$slow/lmdb" "$slow/auto"
  [ -x "$pfs" ] || return 1
  "$pfs" demo/train.lmdb "$slow/lmdb" "$slow/auto" "${slowness[@]}" >"$slow/out" 2>&1 &
  pfs_pid=$!
  until [ -e "$slow/lmdb/data.mdb" ] && [ -e "$slow/auto/data.mdb" ]; do
    kill -0 "$pfs_pid" 2>/dev/null || return 1
    sleep 0.1
  done
}

unmount_slow() {
  [ -z "${pfs_pid:-}" ] || { kill "$pfs_pid" && wait "$pfs_pid"; } 2>/dev/null || true
  rm -rf "$slow"
}

data_of() { # data_of STRATEGY: where its run finds the data, none of them in memory
  if [ -d "$slow" ]; then
    echo "$slow/$1"
  else
    sync demo/train.lmdb/data.mdb
    dd if=demo/train.lmdb/data.mdb iflag=nocache count=0 status=none
    echo demo/train.lmdb
  fi
}

train() { # train STRATEGY: log in demo/STRATEGY.jsonl, output in demo/STRATEGY.txt
  say "training lenet on $ranks ranks, --strategy $1"
  scripts/mpirun.sh openmpi "$ranks" "$forebay" train "$(data_of "$1")" --test demo/test.lmdb \
    --net lenet --batch 64 --coalesce 16 --epochs "$epochs" --strategy "$1" \
    --sync scp-topo --fusion-bytes 256K --measure-skew \
    --mean 73 --scale 0.011 --lr 0.02 --lr-policy inv --gamma 0.002 \
    --checkpoint "demo/checkpoints-$1" --log "demo/$1.jsonl" --trace "demo/$1.trace.json" |
    tee "demo/$1.txt"
}

breakdown() { # breakdown STRATEGY: the table of its output, under a heading
  echo "--strategy $1"
  sed -n '/^seconds/,/images\/s/p' "demo/$1.txt"
}

waited() { # waited STRATEGY: the longest of the ranks' times in the line `read`
  awk -v strategy="$1" '$1 == "read" { for (i = 2; i < NF - 1; ++i) if ($i > most) most = $i }
    END { printf "%-5s %s s\n", strategy, most }' "demo/$1.txt"
}

overlap() { # overlap STRATEGY: what was hidden behind the backward pass
  printf '%-5s %s\n' "$1" "$(sed -n 's/^overlap: //p' "demo/$1.txt")"
}

last_accuracy() { # last_accuracy STRATEGY
  sed -n 's/.*"test_accuracy":\([0-9.]*\).*/\1/p' "demo/$1.jsonl" | tail -n 1
}

say "packages"
scripts/install-deps.sh --for demo

# In a folder of its own, with what the demo runs and no more.
say "build"
start=$(date +%s)
configure quick -B build/demo -D FOREBAY_TRAIN=ON -D FOREBAY_HDF5=OFF -D FOREBAY_PFS=ON
build demo forebay-cli forebay-train forebay-pfs
echo "built in $(seconds_since "$start") s"

say "packing Fashion-MNIST"
mkdir -p demo
rm -rf demo/checkpoints-*
pack train
pack test

say "a place where reading matters"
if mount_slow; then
  echo "a mount for each run, cold, where a fault reads 16 KiB and a request waits 30 ms (docs/pfs.md)"
else
  sed 's/^/  /' "$slow/out" 2>/dev/null || true
  unmount_slow
  echo "nothing can be mounted here (it takes root and /dev/fuse): the data are read cold from this"
  echo "machine's own disk, which answers in no time, so expect both strategies to wait alike"
fi

start=$(date +%s)
train lmdb
train auto
seconds=$(seconds_since "$start")

say "where the time went: lmdb left, auto right"
paste <(breakdown lmdb) <(breakdown auto) |
  awk -F '\t' '{ printf "%-70s | %s\n", $1, $2 }'

say "exposed I/O: how long the rank that waited longest for data (read) kept all waiting (skew)"
waited lmdb
waited auto

say "gradients, summed while the backward pass goes on"
overlap lmdb
overlap auto

say "results"
cmp demo/lmdb.jsonl demo/auto.jsonl || fail "the two strategies computed different losses"
echo "loss curves: identical in $(grep -c '"event":"iteration"' demo/auto.jsonl) iterations"
accuracy=$(last_accuracy auto)
echo "test accuracy after $epochs epochs: $accuracy (goal: $goal)"
echo "training time, both runs: $seconds s"
echo "data sets: demo/train.lmdb demo/test.lmdb"
echo "losses and accuracy: demo/lmdb.jsonl demo/auto.jsonl"
echo "timelines for https://ui.perfetto.dev: demo/lmdb.trace.json demo/auto.trace.json"
echo "checkpoints: demo/checkpoints-lmdb demo/checkpoints-auto"
awk -v have="$accuracy" -v goal="$goal" 'BEGIN { exit !(have >= goal) }' ||
  fail "test accuracy $accuracy is below $goal"
