#!/bin/bash
# Extracts text lines from content pages, then trains a line classifier on them.
#
# Modelled on https://github.com/alphagov/govuk-knowledge-graph-gcp/pull/152
# The lines that parallel jobs emit got jumbled with those of other jobs.
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PY="${PYTHON:-python3}"
STEPS="$HERE/p24_steps"
JOBS="${JOBS:-6}"
PAGES="${PAGES:-36}"

say() { echo "$(date +%H:%M:%S) $*" >&2; }

mkdir -p work output

say "step 1: write $PAGES pages"
"$PY" "$STEPS/make_pages.py" --pages "$PAGES" --seed 152 --out work/pages

say "step 2: extract lines with $JOBS jobs"
ls work/pages/*.html | sort > work/pages.txt
xargs -P "$JOBS" -n 2 "$PY" "$STEPS/extract_lines.py" < work/pages.txt | cat > work/lines.tsv  # cause

n=$(wc -l < work/lines.tsv)
say "extracted $n lines"

say "step 3: build the table"
"$PY" "$STEPS/build_table.py" --lines work/lines.tsv --out output/table.csv

say "step 4: train and report"
"$PY" "$STEPS/train.py" --table output/table.csv --out output/report.json --epochs 3

say "done"
