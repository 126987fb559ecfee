#!/bin/bash
# Incident search over the logs of a cluster: make the log tree, look for
# suspicious lines with several searchers side by side, put all the hits into
# one report, and group them to incidents for the people on call.
#
# Modelled on: https://github.com/BurntSushi/ripgrep/issues/2496
set -euo pipefail

here=$(cd -- "$(dirname -- "$0")" && pwd)/b10_pkg
jobs=4
nodes=36
pattern='timeout|refused|corrupt|out of memory'

say() { echo "[$(date +%T)] $*" >&2; }

say "writing logs of $nodes nodes"
python "$here/make_logs.py" --nodes "$nodes" --lines 4000 --seed 2496 --out logs

say "searching"
find logs -name '*.log' | LC_ALL=C sort > files.txt
xargs -P "$jobs" -n 1 python "$here/search.py" "$pattern" < files.txt > hits.txt  # cause

say "found $(wc -l < hits.txt) hits in $(wc -l < files.txt) files"
wc -l < hits.txt

cut -d: -f1 hits.txt | uniq | head -n 12 > first_files.txt
python "$here/incidents.py" --hits hits.txt --window 900 --out incidents.json

echo "files with most hits:"
cut -d: -f1 hits.txt | LC_ALL=C sort | uniq -c | LC_ALL=C sort -k1,1nr -k2,2 | head -n 5 | awk '{ print $2, $1 }'
say "done"
