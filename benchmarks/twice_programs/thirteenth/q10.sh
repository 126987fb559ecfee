#!/bin/bash
# Evaluate a pangenome by sampling assemblies and comparing the sample with the rest.
# Report: https://github.com/pangenome/pgge/issues/12
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
steps="$here/q10_steps"

n_assemblies=300
n_sample=40
length=6000
kmer=21
sketch=300
seed=12
out=pgge_out

usage() {
  echo "usage: $(basename "$0") [-n assemblies] [-s sample] [-k kmer] [-o outdir]" >&2
  exit 1
}

log() {
  echo "[pgge::$(date +%H:%M:%S)] $*" >&2
}

while getopts "n:s:k:o:h" opt; do
  case $opt in
    n) n_assemblies=$OPTARG ;;
    s) n_sample=$OPTARG ;;
    k) kmer=$OPTARG ;;
    o) out=$OPTARG ;;
    *) usage ;;
  esac
done

require() {
  command -v "$1" >/dev/null || { log "missing program: $1"; exit 2; }
}

make_input() {
  log "simulating $n_assemblies assemblies of $length bp"
  python "$steps/simulate.py" "$n_assemblies" "$length" "$seed" "$out/assemblies.fa"
  grep '^>' "$out/assemblies.fa" | cut -c2- | LC_ALL=C sort > "$out/names.txt"
}

sketch_all() {
  log "sketching with k=$kmer"
  python "$steps/kmers.py" "$out/assemblies.fa" "$kmer" "$sketch" > "$out/sketches.tsv"
}

choose() {
  local total
  total=$(wc -l < "$out/names.txt")
  if [ "$n_sample" -ge "$total" ]; then
    cp "$out/names.txt" "$out/sample.txt"
    return
  fi
  shuf -n "$n_sample" "$out/names.txt" > "$out/sample.txt"  # cause
  log "chose $(wc -l < "$out/sample.txt") of $total assemblies"
}

evaluate() {
  python "$steps/evaluate.py" "$out/sketches.tsv" "$out/sample.txt" "$out/pgge.json"
}

require shuf
require python
mkdir -p "$out"
log "process $$ in $PWD"
make_input
sketch_all
choose
evaluate
log "finished after ${SECONDS}s"
