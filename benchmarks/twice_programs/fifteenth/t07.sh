#!/usr/bin/env bash
# Click model pipeline: shards -> features -> online logistic regression.
#
# Modelled on https://github.com/shenwei356/rush/issues/7
#
# usage: t07.sh [workdir]
#   SEED     seed of the generated events (default 17)
#   SHARDS   number of shards             (default 14)
#   JOBS     parallel feature jobs        (default 4)
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STEPS="$HERE/t07_steps"
WORK=${1:-click_model}
SEED=${SEED:-17}
SHARDS=${SHARDS:-14}
JOBS=${JOBS:-4}
PYTHON=${PYTHON:-python}

export LC_ALL=C STEPS PYTHON

log() {
    printf '[%s] %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$*" >&2
}

need() {
    command -v "$1" >/dev/null || { log "missing command: $1"; exit 2; }
}

need "$PYTHON"
need xargs
need awk

mkdir -p "$WORK/raw" "$WORK/model"
FEATURES="$WORK/features.tsv"
export FEATURES

# ---------------------------------------------------------------- 1. raw data
log "writing $SHARDS shards with seed $SEED"
"$PYTHON" "$STEPS/make_shards.py" --shards "$SHARDS" --seed "$SEED" --out "$WORK/raw"
ls "$WORK"/raw/shard_*.tsv | sort > "$WORK/shards.txt"
raw_rows=$(cat "$WORK"/raw/shard_*.tsv | wc -l)
log "raw rows: $raw_rows"

# ---------------------------------------------------------------- 2. features
log "extracting features with $JOBS jobs"
: > "$FEATURES"
extract_one() {
    "$PYTHON" "$STEPS/extract.py" "$1" >> "$FEATURES"  # cause
}
export -f extract_one
start=$(date +%s)
xargs -P "$JOBS" -n 1 bash -c 'extract_one "$1"' _ < "$WORK/shards.txt"  # cause
log "features done after $(( $(date +%s) - start ))s"

rows=$(wc -l < "$FEATURES")
if [ "$rows" -ne "$raw_rows" ]; then
    log "row count mismatch: $rows features, $raw_rows events"
    exit 1
fi

# ---------------------------------------------------------------- 3. statistics
awk -F'\t' '{ n++; if ($2 == 1) pos++ } END { printf "rows\t%d\npositive\t%d\n", n, pos }' \
    "$FEATURES" > "$WORK/stats.tsv"

# ---------------------------------------------------------------- 4. model
for lr in 0.02 0.05 0.10; do
    log "training with learning rate $lr"
    "$PYTHON" "$STEPS/train.py" "$FEATURES" --lr "$lr" --model "$WORK/model/lr_$lr.json" \
        > "$WORK/model/lr_$lr.log"
done

# ---------------------------------------------------------------- 5. report
{
    printf 'lr\tresult\n'
    for f in "$WORK"/model/lr_*.log; do
        name=$(basename "$f" .log)
        printf '%s\t%s\n' "${name#lr_}" "$(cat "$f")"
    done
} > "$WORK/report.tsv"
cat "$WORK/report.tsv"
log "finished"
