#!/bin/bash
# Validation of a small read mapper on simulated sequencing runs.
#
# 1. a reference genome is made from a fixed seed,
# 2. for each of eight samples, mutated reads are simulated,
# 3. the reads are mapped by k-mer seeds and compared to where they came from,
# 4. a summary over the samples is written to summary.tsv.
#
# Modelled on: https://liorpachter.wordpress.com/2013/10/25/random-numbers-reproducibility-and-samtools/
set -euo pipefail
here=$(cd -P "$(dirname "$0")" && pwd)
tools=$here/f01_pkg
work=${WORK:-.}
genome=$work/genome.fa
samples=8
reads=600

log() { echo "[$(date +%H:%M:%S)] $*" >&2; }

log "reference"
python "$tools/make_genome.py" --length 40000 --seed 7 --out "$genome"

for i in $(seq 1 "$samples"); do
    log "sample $i"
    python "$tools/simulate_reads.py" --genome "$genome" --reads "$reads" \
        --distance 200 --error 0.02 --out "$work/sample_$i.fq"
    python "$tools/map_reads.py" --genome "$genome" --reads "$work/sample_$i.fq" \
        --out "$work/sample_$i.tsv"
done

log "summary"
{
    printf 'sample\treads\tmapped\tcorrect\tmean_mismatch\n'
    for i in $(seq 1 "$samples"); do
        awk -F'\t' -v s="$i" 'NR > 1 { n++; if ($3 >= 0) { m++; d += $4; if ($3 - $2 <= 3 && $2 - $3 <= 3) c++ } }
            END { printf "%s\t%d\t%d\t%d\t%.4f\n", s, n, m, c, m ? d / m : 0 }' "$work/sample_$i.tsv"
    done
} > "$work/summary.tsv"
cat "$work/summary.tsv"
