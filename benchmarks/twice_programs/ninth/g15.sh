#!/usr/bin/env bash
# Amplicon pipeline: simulate plates, trim the reads of each plate, cluster them to OTUs.
#
# Modelled on https://github.com/mothur/mothur/issues/859 where the downstream analyses of a seeded batch differed between runs.
set -euo pipefail
export LC_ALL=C

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export PY="${PYTHON:-python}"
export TRIM="$HERE/g15_amplicon/trim.py"
SEED="${SEED:-31}"
PLATES="${PLATES:-20}"
IDENTITY="${IDENTITY:-0.80}"

log() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

start=$(date +%s)
mkdir -p plates
log "simulating $PLATES plates"
"$PY" "$HERE/g15_amplicon/simulate.py" --seed "$SEED" --plates "$PLATES" --outdir plates

log "trimming"
rm -f trimmed.tsv
ls plates/*.fastq | sort > plates.txt
xargs -a plates.txt -P 2 -I{} sh -c '"$PY" "$TRIM" "$1" >> trimmed.tsv' _ {}  # cause
log "$(wc -l < trimmed.tsv) reads after trimming"

log "clustering at $IDENTITY"
"$PY" "$HERE/g15_amplicon/cluster.py" trimmed.tsv --identity "$IDENTITY" --table otus.csv --report otus.json
log "pipeline took $(($(date +%s) - start))s"
