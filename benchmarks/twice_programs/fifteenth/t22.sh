#!/usr/bin/env bash
# Rarefaction of a metagenomic sample: subsample, classify, diversity.
#
# Modelled on https://github.com/shenwei356/seqkit/issues/565
#
# usage: t22.sh [outdir]
#   SEED    seed of the simulated sample   (default 11)
#   READS   number of simulated reads      (default 45000)
#   DEPTHS  rarefaction depths
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STEPS="$HERE/t22_steps"
OUT=${1:-rarefaction}
SEED=${SEED:-11}
READS=${READS:-45000}
DEPTHS=${DEPTHS:-"1000 3000 9000 20000 30000"}
PYTHON=${PYTHON:-python}
export LC_ALL=C

say() {
    printf '%s %s\n' "$(date +%T)" "$*" >&2
}

check_tools() {
    local tool
    for tool in "$PYTHON" shuf awk sort paste; do
        if ! command -v "$tool" > /dev/null; then
            say "required tool '$tool' is not installed"
            exit 2
        fi
    done
}

simulate() {
    say "simulating $READS reads (seed $SEED)"
    "$PYTHON" "$STEPS/reads.py" --seed "$SEED" --reads "$READS" \
        --genomes "$OUT/genomes.tsv" --out "$OUT/reads.tsv"
}

subsample() {
    # subsample DEPTH FILE: the reads of a rarefied sample, by name
    local depth=$1 target=$2
    shuf -n "$depth" "$OUT/reads.tsv" | sort -k1,1 > "$target"  # cause
}

classify() {
    local reads=$1 target=$2
    "$PYTHON" "$STEPS/classify.py" "$OUT/genomes.tsv" "$reads" > "$target"
}

summarise() {
    local table=$1
    awk -F'\t' '{ total += $2; if ($1 == "unassigned") miss = $2 }
                END { printf "%d reads, %.4f unassigned\n", total, miss / total }' "$table"
}

main() {
    check_tools
    mkdir -p "$OUT/subsamples" "$OUT/counts"
    simulate
    say "classifying the full sample"
    classify "$OUT/reads.tsv" "$OUT/counts/full.tsv"
    printf 'full\t%s\n' "$(summarise "$OUT/counts/full.tsv")"
    local depth
    for depth in $DEPTHS; do
        if [ "$depth" -gt "$READS" ]; then
            say "depth $depth is larger than the sample, skipped"
            continue
        fi
        subsample "$depth" "$OUT/subsamples/depth_$depth.tsv"
        classify "$OUT/subsamples/depth_$depth.tsv" "$OUT/counts/depth_$depth.tsv"
        printf '%s\t%s\n' "$depth" "$(summarise "$OUT/counts/depth_$depth.tsv")"
        say "depth $depth done"
    done
    "$PYTHON" "$STEPS/diversity.py" "$OUT"/counts/*.tsv > "$OUT/diversity.json"
    paste -s -d ' ' "$OUT/diversity.json" | tr -s ' '
    say "wrote $OUT/diversity.json on $(hostname)"
}

main "$@"
