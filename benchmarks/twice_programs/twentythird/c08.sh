#!/bin/bash
# Host filtering of metagenomic reads.
#
# Simulates reads of a sample, splits them into chunks, aligns the chunks to the
# host in several processes, removes duplicates from the unmapped reads, takes
# the first reads up to the cap, and assigns them to taxa.
#
# Modelled on: https://github.com/chanzuckerberg/czid-dag/pull/316
set -euo pipefail

here=$(dirname "$0")
steps=$here/c08_pkg
threads=4
max_reads=600

log() { echo "$(date +%H:%M:%S) $*" >&2; }

log "simulating sample"
python "$steps/simulate.py" --reads 3200 --seed 316 --out reads.fastq --references references.json

log "splitting reads"
mkdir -p chunks
split -l 800 -d -a 2 --additional-suffix=.fastq reads.fastq chunks/part_

log "aligning to the host with $threads processes"
ls chunks/part_*.fastq | xargs -P "$threads" -n 1 python "$steps/align.py" references.json > unmapped.fastq  # cause

log "filtering"
python "$steps/dedup.py" unmapped.fastq > unique.fastq
head -n $((4 * max_reads)) unique.fastq > subsampled.fastq

log "classifying"
python "$steps/classify.py" references.json subsampled.fastq > taxa.tsv

echo "reads:      $(($(wc -l < reads.fastq) / 4))"
echo "unmapped:   $(($(wc -l < unmapped.fastq) / 4))"
echo "unique:     $(($(wc -l < unique.fastq) / 4))"
echo "subsampled: $(($(wc -l < subsampled.fastq) / 4))"
cat taxa.tsv
rm -r chunks
log "done"
