#!/bin/bash
# Pseudoreplicates of an aligned library and their peak consistency.
# Modelled on https://github.com/ENCODE-DCC/chip-seq-pipeline2/pull/230
# Splits the reads of a library in two, calls peaks in each half and compares them.
set -euo pipefail

script_dir="$(cd "$(dirname "$0")" && pwd)"
py_dir="$script_dir/s25_steps"

OUT="pseudorep"
READS=30000
THRESHOLD=3.0

while [ $# -gt 0 ]; do
    case "$1" in
        --out) OUT="$2"; shift 2 ;;
        --reads) READS="$2"; shift 2 ;;
        --threshold) THRESHOLD="$2"; shift 2 ;;
        *) echo "unknown option $1" >&2; exit 2 ;;
    esac
done

say() { echo "$(date '+%F %T') [$$] $*" >&2; }

cleanup() { rm -f "$OUT"/*.tmp; }
trap cleanup EXIT

# tag_align FILE
tag_align() {
    python "$py_dir/align.py" --reads "$READS" --seed 31 > "$OUT/aligned.tmp"
    sort -k1,1V -k2,2n -k6,6 "$OUT/aligned.tmp" > "$1"
    say "aligned $(wc -l < "$1") reads"
}

# nodup IN OUT
nodup() {
    awk '!seen[$1, $2, $6]++' "$1" > "$2"
    say "kept $(wc -l < "$2") after duplicate removal"
}

# spr IN PREFIX
spr() {
    local lines half
    lines=$(wc -l < "$1")
    half=$(((lines + 1) / 2))
    shuf "$1" | split -d -l "$half" - "$2.pr"  # cause
    for part in 00 01; do
        sort -k1,1V -k2,2n -k6,6 "$2.pr$part" > "$2.pr$part.tagAlign"
        rm "$2.pr$part"
        say "pseudoreplicate $part: $(wc -l < "$2.pr$part.tagAlign") reads"
    done
}

# peaks IN OUT
peaks() {
    python "$py_dir/peaks.py" --input "$1" --threshold "$THRESHOLD" > "$2"
    say "$(basename "$2"): $(wc -l < "$2") peaks"
}

mkdir -p "$OUT"
tag_align "$OUT/rep1.tagAlign"
nodup "$OUT/rep1.tagAlign" "$OUT/rep1.nodup.tagAlign"
spr "$OUT/rep1.nodup.tagAlign" "$OUT/rep1"

peaks "$OUT/rep1.nodup.tagAlign" "$OUT/rep1.peaks"
peaks "$OUT/rep1.pr00.tagAlign" "$OUT/pr1.peaks"
peaks "$OUT/rep1.pr01.tagAlign" "$OUT/pr2.peaks"

python "$py_dir/consistency.py" "$OUT/rep1.peaks" "$OUT/pr1.peaks" "$OUT/pr2.peaks" \
    | tee "$OUT/qc.tsv"
awk '{ s += $4 } END { printf "signal\t%.4f\n", s }' "$OUT/pr1.peaks"
say "took ${SECONDS} s"
