#!/bin/bash
# Gazetteer extract and search index.
# Modelled on https://github.com/pelias/placeholder/issues/142
# Extracts place records from several data files and builds a token index from them.
set -euo pipefail

root="$(cd "$(dirname "$0")" && pwd)"
STEPS="$root/s13_steps"
DATA_DIR="${DATA_DIR:-wof}"
OUT="${OUT:-gazetteer}"
FILES=40
PLACES=50

function info() {
    echo "$(date -u +%T) $*" >&2
}

function require() {
    for tool in "$@"; do
        command -v "$tool" > /dev/null || { echo "missing $tool" >&2; exit 1; }
    done
}

function make_data() {
    mkdir -p "$DATA_DIR"
    python "$STEPS/make_places.py" "$DATA_DIR" "$FILES" "$PLACES"
    info "data: $(ls "$DATA_DIR" | wc -l) files"
}

function extract() {
    find "$DATA_DIR" -name '*.geojson' | sort |
        xargs -n 1 -P 4 python "$STEPS/extract.py" > "$OUT/wof.extract"  # cause
    info "extract: $(wc -l < "$OUT/wof.extract") records"
}

function check() {
    local want=$((FILES * PLACES))
    local got
    got=$(wc -l < "$OUT/wof.extract")
    if [ "$got" -ne "$want" ]; then
        info "expected $want records, found $got"
        exit 1
    fi
    sort "$OUT/wof.extract" | cksum >&2
}

function build() {
    python "$STEPS/build_index.py" "$OUT/wof.extract" "$OUT"
}

function query() {
    local q
    for q in "north bay" "old town" "lake" "saint hill" "port"; do
        python "$STEPS/search.py" "$OUT/index.json" "$q"
    done > "$OUT/answers.txt"
}

require python xargs sort find
mkdir -p "$OUT"
info "pid $$"
make_data
extract
check
build
query
cat "$OUT/answers.txt"
info "finished in ${SECONDS}s"
