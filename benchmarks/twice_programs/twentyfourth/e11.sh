#!/bin/bash
# Session report of the access logs of a web farm.
#
# Makes the logs, extracts the sessions of each host on a few processes, joins
# them to one table and writes the report of the day with a list for review.
#
# Modelled on: https://github.com/aaronriekenberg/rust-parallel/issues/35
set -eu

here=$(dirname "$0")
steps="$here/e11_pkg"
export steps
python=${PYTHON:-python}
export python
seed=35
jobs=4

say() {
    printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2
}

check() {
    # check FILE MINIMUM: stop when a table is too short
    local n
    n=$(wc -l < "$1")
    if [ "$n" -lt "$2" ]; then
        say "$1 has only $n lines"
        exit 1
    fi
    echo "$1: $n lines"
}

say "making logs"
"$python" "$steps/make_logs.py" logs "$seed"

say "extracting sessions"
find logs -name '*.log' | sort > hosts.txt
check hosts.txt 10
xargs -n 1 -P "$jobs" sh -c 'out=$("$python" "$steps/extract.py" "$0") && printf "%s\n" "$out"' < hosts.txt > sessions.tsv  # cause
check sessions.tsv 1000

say "hosts by number of sessions"
cut -f 1 sessions.tsv | sort | uniq -c | sort -k1,1nr -k2,2 > by_host.txt
cat by_host.txt

say "clients with most errors"
awk -F '\t' '{ e[$2] += $7 } END { for (c in e) print e[c] "\t" c }' sessions.tsv \
    | sort -k1,1nr -k2,2 | head -n 10 > errors.tsv
cat errors.tsv

say "writing report"
"$python" "$steps/report.py" sessions.tsv report.json "$seed"
head -n 3 sessions.tsv
say "done"
