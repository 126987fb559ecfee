#!/bin/bash
# Low coverage study: simulate alignments of one sample, take a share of the
# read pairs for each target coverage, call variants from what is left, and
# compare the calls with the truth.
#
# Modelled on: https://github.com/biod/sambamba/issues/471
set -euo pipefail

here=$(cd -- "$(dirname -- "$0")" && pwd)/b09_pkg
genome_size=60000
full_coverage=40
targets=(24 12 6)

step() { echo "[$(date +%H:%M:%S)] $*" >&2; }

mkdir -p aln calls

step "simulating alignments"
python "$here/simulate.py" --size "$genome_size" --coverage "$full_coverage" \
    --seed 471 --out aln/full.tsv --truth truth.tsv

step "calling variants on all reads"
python "$here/call.py" --input aln/full.tsv --size "$genome_size" --out calls/full.tsv
python "$here/compare.py" --truth truth.tsv --calls calls/full.tsv --label full | tee summary.txt

for target in "${targets[@]}"; do
    fraction=$(awk -v t="$target" -v f="$full_coverage" 'BEGIN { printf "%.4f", t / f }')
    step "subsampling to ${target}x (fraction $fraction)"
    python "$here/view.py" --subsample "$fraction" aln/full.tsv > "aln/${target}x.tsv"  # cause
    python "$here/call.py" --input "aln/${target}x.tsv" --size "$genome_size" --out "calls/${target}x.tsv"
    python "$here/compare.py" --truth truth.tsv --calls "calls/${target}x.tsv" --label "${target}x" \
        | tee -a summary.txt
done

echo "reads per file:"
for name in full "${targets[@]/%/x}"; do
    printf '%s %d\n' "$name" "$(grep -vc '^@' "aln/$name.tsv")"
done
step "done"
