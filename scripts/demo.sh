#!/usr/bin/env bash
# From a fresh clone to a trained network: `make demo`.
#
# Packs Fashion-MNIST into LMDB, trains LeNet on 4 ranks twice, reading with the baseline (lmdb) and
# with what `auto` chooses, and shows where the time went. How data are read must not change what
# is computed, so both runs have to log the same losses, digit by digit. Gradients are summed while
# the backward pass goes on (--sync scp-topo), in several transfers. Everything lands in demo/.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

ranks=4
epochs=3
goal=0.88
source_data=/usr/share/datasets/fashion-mnist
forebay=build/demo/src/forebay

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "demo: $*" >&2
  exit 1
}

pack() { # pack SPLIT
  "$forebay" pack "$source_data" "demo/$1.lmdb" --from idx --split "$1" --force
}

train() { # train STRATEGY: log in demo/STRATEGY.jsonl, output in demo/STRATEGY.txt
  say "training lenet on $ranks ranks, --strategy $1"
  scripts/mpirun.sh openmpi "$ranks" "$forebay" train demo/train.lmdb --test demo/test.lmdb \
    --net lenet --batch 64 --coalesce 16 --epochs "$epochs" --strategy "$1" \
    --sync scp-topo --fusion-bytes 256K \
    --mean 73 --scale 0.011 --lr 0.02 --lr-policy inv --gamma 0.002 \
    --checkpoint "demo/checkpoints-$1" --log "demo/$1.jsonl" --trace "demo/$1.trace.json" |
    tee "demo/$1.txt"
}

breakdown() { # breakdown STRATEGY: the table of its output, under a heading
  echo "--strategy $1"
  sed -n '/^seconds/,/images\/s/p' "demo/$1.txt"
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
configure quick -B build/demo -D FOREBAY_TRAIN=ON -D FOREBAY_HDF5=OFF
build demo forebay-cli forebay-train
echo "built in $(seconds_since "$start") s"

say "packing Fashion-MNIST"
mkdir -p demo
rm -rf demo/checkpoints-*
pack train
pack test

start=$(date +%s)
train lmdb
train auto
seconds=$(seconds_since "$start")

say "where the time went: lmdb left, auto right"
paste <(breakdown lmdb) <(breakdown auto) |
  awk -F '\t' '{ printf "%-70s | %s\n", $1, $2 }'

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
