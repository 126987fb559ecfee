#!/bin/sh
# Barcode assignment for long single-cell reads with a small Bayesian classifier.
#
# Modelled on https://github.com/dieterich-lab/single-cell-nanopore/issues/17
#
# Steps: synthetic whitelist and genome -> background barcodes -> simulated
# training reads -> feature table -> classifier -> assignment of real reads.
set -eu

STEPS=$(cd "$(dirname "$0")" && pwd)/z20_steps
OUT=${OUT:-assignment}
SEED=${SEED:-1702}
NUM_CELLS=300
NUM_RAW=4992
NUM_TRAIN=900
NUM_REAL=450
PERCENT_RAW=20

say() { echo "[$(date '+%Y-%m-%d %H:%M:%S')] $*"; }

mkdir -p "$OUT/ref" "$OUT/train" "$OUT/real" "$OUT/report"
say "output folder $PWD/$OUT"

say "build_whitelist"
python "$STEPS/build_whitelist.py" --cells "$NUM_CELLS" --raw "$NUM_RAW" --seed "$SEED" \
    --out "$OUT/ref"

say "build_genome"
n_background=$((NUM_RAW * PERCENT_RAW / 100))
gzip -dc "$OUT/ref/bk_barcodes.tsv.gz" | shuf -n "$n_background" > "$OUT/ref/background.txt" # cause
sort "$OUT/ref/background.txt" | cut -c1-6 | uniq -c | awk '$1 > 1' | wc -l \
    | xargs echo "  prefixes shared by background barcodes:"
awk '{print ">bg" NR "\n" $1}' "$OUT/ref/background.txt" > "$OUT/ref/background.fa"

say "simulate training reads"
python "$STEPS/simulate_reads.py" --whitelist "$OUT/ref/whitelist.txt" \
    --background "$OUT/ref/background.fa" --reads "$NUM_TRAIN" --seed "$SEED" \
    --out "$OUT/train/reads.tsv"

say "simulate real reads"
python "$STEPS/simulate_reads.py" --whitelist "$OUT/ref/whitelist.txt" \
    --reads "$NUM_REAL" --seed $((SEED + 1)) --out "$OUT/real/reads.tsv"

for part in train real; do
    say "features: $part"
    python "$STEPS/features.py" --whitelist "$OUT/ref/whitelist.txt" \
        --reads "$OUT/$part/reads.tsv" --out "$OUT/$part/features.csv"
done

say "classify"
python "$STEPS/classify.py" --train "$OUT/train/features.csv" --real "$OUT/real/features.csv" \
    --out "$OUT/report"

say "assigned per score bin"
awk -F, 'NR > 1 { b = int($4 * 10); n[b]++ } END { for (i = 0; i <= 10; i++) printf "  %.1f %d\n", i / 10, n[i] }' \
    "$OUT/report/assigned.csv" | tee "$OUT/report/bins.txt"
say "finished"
