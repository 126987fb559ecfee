#!/bin/bash
# Simulated ChIP-seq reads, their coverage and peak calls.
# Modelled on https://github.com/gymreklab/chips/issues/41
# Shears fragments around known peaks, sequences them and calls the peaks again.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
steps="$here/s08_steps"

usage() {
    echo "usage: s08.sh [-o OUTDIR] [-n COPIES] [-l GENOME_LENGTH] [-p PEAKS]" >&2
    exit 2
}

outdir=chipsim
copies=3000
genome_length=400000
peaks=60
while getopts "o:n:l:p:h" opt; do
    case "$opt" in
        o) outdir="$OPTARG" ;;
        n) copies="$OPTARG" ;;
        l) genome_length="$OPTARG" ;;
        p) peaks="$OPTARG" ;;
        *) usage ;;
    esac
done

log() {
    printf '[%s] %s\n' "$(date '+%H:%M:%S')" "$*" >&2
}

stamp="$(date +%s%N)"  # cause
mkdir -p "$outdir"
log "working in $outdir as process $$"

log "step 1: reference peaks"
python "$steps/make_peaks.py" --length "$genome_length" --peaks "$peaks" \
    --seed 4 > "$outdir/peaks.bed"
total=$(wc -l < "$outdir/peaks.bed")
log "wrote $total peaks"

log "step 2: shearing and pulldown"
python "$steps/simulate_reads.py" --peaks "$outdir/peaks.bed" --copies "$copies" \
    --length "$genome_length" --seed "$stamp" > "$outdir/reads.bed"

log "step 3: sort and merge duplicates"
sort -k1,1 -k2,2n -k3,3n "$outdir/reads.bed" | uniq -c |
    awk 'BEGIN { OFS = "\t" } { print $2, $3, $4, $1 }' > "$outdir/dedup.bed"

log "step 4: coverage per bin"
awk -v bin=200 'BEGIN { OFS = "\t" }
    { mid = int(($2 + $3) / 2 / bin); c[mid]++ }
    END { for (b in c) print b, c[b] }' "$outdir/dedup.bed" |
    sort -k1,1n > "$outdir/coverage.tsv"

log "step 5: peak calling"
python "$steps/call_peaks.py" --coverage "$outdir/coverage.tsv" \
    --truth "$outdir/peaks.bed" --bin 200 > "$outdir/called.tsv"

fragments=$(wc -l < "$outdir/reads.bed")
unique=$(wc -l < "$outdir/dedup.bed")
called=$(($(wc -l < "$outdir/called.tsv") - 1))
{
    echo "fragments	$fragments"
    echo "unique	$unique"
    echo "called	$called"
    awk -F'\t' 'NR > 1 { hit += $5 } END { print "hits\t" hit }' "$outdir/called.tsv"
} > "$outdir/summary.tsv"
cat "$outdir/summary.tsv"
log "done after ${SECONDS} s"
