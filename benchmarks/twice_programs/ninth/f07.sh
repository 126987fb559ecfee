#!/bin/sh
# Click model on hourly logs: generate, extract the features of every hour, train.
# Modelled on https://github.com/pelias/placeholder/issues/44
# A project moves its extraction from GNU parallel to xargs and asks about the records.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
hours=${HOURS:-72}
jobs=${JOBS:-4}
work=work
started=$(date +%s)

say() { echo "$(date +%H:%M:%S) $*" >&2; }

mkdir -p "$work/raw" "$work/features"

say "generating $hours hours"
PYTHONPATH="$here" "$python" -m f07_clicks.generate --hours "$hours" --seed 3 --out "$work/raw"

cat > "$work/extract.awk" <<'AWK'
# raw line: user,age,hour,item,price,seen,dwell,click
BEGIN { FS = ","; OFS = "," }
NR == 1 { next }
$6 == 0 { next }
{
    price = $5 / 100.0
    night = ($3 < 7 || $3 > 21) ? 1 : 0
    young = ($2 < 30) ? 1 : 0
    for (i = 0; i < 150; i++) s = (s * 31 + $1 + i) % 65521
    printf "%d,%.4f,%d,%d,%.4f,%d,%d\n", $1, price, night, young, $7 / 10.0, $4, $8
}
AWK

say "extracting"
table="$work/features/all.csv"
: > "$table"
find "$work/raw" -name '*.csv' | sort > "$work/hours.txt"
xargs -P "$jobs" -n 1 sh -c 'awk -f work/extract.awk "$1" >> work/features/all.csv' extract < "$work/hours.txt"  # cause
rows=$(wc -l < "$table")
say "$rows rows"
[ "$rows" -gt 0 ] || { say "nothing extracted"; exit 1; }

say "training"
PYTHONPATH="$here" "$python" -m f07_clicks.train --table "$table" --epochs 4 --seed 3 --out clicks.json
say "done in $(( $(date +%s) - started ))s"
