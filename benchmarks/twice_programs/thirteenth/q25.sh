#!/bin/bash
# Run tuning trials in the background, then resume from the newest checkpoints.
# Report: https://github.com/ray-project/ray/pull/3781
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
steps="$here/q25_steps"

trials=24
slots=8
keep=10
out=tune_results

log() { printf '[%(%H:%M:%S)T] %s\n' -1 "$*" >&2; }

while [ $# -gt 0 ]; do
  case $1 in
    --trials) trials=$2; shift 2 ;;
    --slots) slots=$2; shift 2 ;;
    --keep) keep=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    *) echo "unknown option $1" >&2; exit 1 ;;
  esac
done

ckpt="$out/checkpoints"
mkdir -p "$ckpt"

start_trials() {
  local t
  for ((t = 0; t < trials; t++)); do
    while [ "$(jobs -rp | wc -l)" -ge "$slots" ]; do
      wait -n
    done
    python "$steps/trial.py" "$out/data.npz" "$t" "$ckpt/experiment_state-$(printf '%03d' "$t").json" &
  done
  wait
}

find_newest() {
  mapfile -t newest < <(ls -t "$ckpt" | head -n "$keep")  # cause
  newest=("${newest[@]/#/$ckpt/}")
  log "newest: ${newest[0]}"
}

verify() {
  local n
  n=$(find "$ckpt" -name 'experiment_state-*.json' | wc -l)
  if [ "$n" -ne "$trials" ]; then
    log "expected $trials checkpoints, found $n"
    exit 3
  fi
}

log "driver pid $$"
python "$steps/prepare.py" "$out/data.npz" 11
start_trials
verify
find_newest
python "$steps/ensemble.py" "$out/data.npz" "$out/ensemble.json" "${newest[@]}"
log "done after ${SECONDS}s"
