#!/bin/bash
# Code metrics of a source tree.
#
# Makes a tree of source files, measures each of them in a process of its own,
# collects the JSON documents in one file and prints a report. The report is
# kept next to the documents with a checksum for later comparison.
#
# Modelled on: https://github.com/dekobon/big-code-analysis/issues/1303
set -eu

here=$(dirname "$0")
jobs=4
files=18
tree=src
documents=metrics.jsonl

say() {
    echo "[$(date +%H:%M:%S)] $*" >&2
}

make_tree() {
    say "making $files files"
    python "$here/d11_pkg/make_sources.py" "$tree" "$files" 99
}

measure_all() {
    say "measuring with $jobs jobs"
    find "$tree" -name '*.py' | sort > files.txt
    xargs -P "$jobs" -n 1 python "$here/d11_pkg/measure.py" < files.txt > "$documents"  # cause
}

check_all() {
    local wanted found
    wanted=$(wc -l < files.txt)
    found=$(wc -l < "$documents")
    if [ "$wanted" -ne "$found" ]; then
        say "expected $wanted documents, found $found"
        exit 1
    fi
    say "$found documents"
}

make_report() {
    python "$here/d11_pkg/report.py" "$documents" report.json | tee report.txt
    sha256sum "$documents" | cut -c1-16 > checksum.txt
    echo "checksum: $(cat checksum.txt)"
}

make_tree
measure_all
check_all
make_report
