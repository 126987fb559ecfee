#!/usr/bin/env bash
# Differential k-mer analysis: counts are cut into chunks that are tested on their own.
#
# Modelled on https://github.com/Transipedia/dekupl-run/pull/61 where two runs on the same samples
# reported other sets of differential k-mers.
set -euo pipefail
export LC_ALL=C

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PY="${PYTHON:-python}"
SEED="${SEED:-17}"
KMERS="${KMERS:-12000}"
CHUNK="${CHUNK:-1500}"
WORK="${WORK:-.}"

log() { printf '%s %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

cd "$WORK"
mkdir -p tmp chunks results
start=$(date +%s)

log "simulating $KMERS k-mers"
"$PY" "$HERE/g07_kmers/simulate.py" --seed "$SEED" --kmers "$KMERS" --out raw-counts.tsv

log "filtering low counts"
awk -F'\t' 'NR == 1 { print; next }
            { n = 0; for (i = 2; i <= NF; i++) if ($i >= 2) n++; if (n >= 4) print }' raw-counts.tsv > tmp/kept.tsv
head -n 1 tmp/kept.tsv > tmp/header.tsv
log "kept $(($(wc -l < tmp/kept.tsv) - 1)) k-mers"

tail -n +2 tmp/kept.tsv | sort -u > tmp/rows.tsv
shuf tmp/rows.tsv > tmp/table.tsv  # cause
split -l "$CHUNK" -d -a 3 tmp/table.tsv chunks/part-
rm -rf tmp/rows.tsv

for part in chunks/part-*; do
  name="$(basename "$part")"
  "$PY" "$HERE/g07_kmers/difftest.py" "$part" "results/$name.tsv" >&2
done

cat results/part-*.tsv | sort -k1,1 > diff-kmers.tsv
log "done in $(($(date +%s) - start))s"
"$PY" "$HERE/g07_kmers/report.py" diff-kmers.tsv report.json
