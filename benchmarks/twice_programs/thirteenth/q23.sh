#!/bin/sh
# Search a source tree for function signatures and build a prompt from the matches.
# Report: https://github.com/synseqack/aict/issues/31
set -eu

here=$(cd "$(dirname "$0")" && pwd)
steps="$here/q23_steps"

FILES=${FILES:-90}
WORKERS=${WORKERS:-4}
BUDGET=${BUDGET:-900}
PATTERN='^func ([a-z]+)[0-9]+\(a ([^)]*)\)'
OUT=${OUT:-grep_out}

say() {
  printf '%s %s\n' "$(date '+%F %T')" "$*" >&2
}

fail() {
  say "error: $*"
  exit 1
}

prepare() {
  mkdir -p "$OUT"
  python "$steps/make_tree.py" "$OUT/src" "$FILES" 31
  find "$OUT/src" -name '*.go' -type f | LC_ALL=C sort > "$OUT/files.txt"
  say "$(wc -l < "$OUT/files.txt") files"
}

search() {
  : > "$OUT/matches.jsonl"
  xargs -n 1 -P "$WORKERS" python "$steps/match.py" "$PATTERN" < "$OUT/files.txt" >> "$OUT/matches.jsonl"  # cause
  say "$(wc -l < "$OUT/matches.jsonl") matches"
}

check() {
  [ -s "$OUT/matches.jsonl" ] || fail "nothing found"
  files=$(cut -d'"' -f4 "$OUT/matches.jsonl" | LC_ALL=C sort -u | wc -l)
  say "matches in $files files"
}

build_prompt() {
  python "$steps/summary.py" "$OUT/matches.jsonl" "$BUDGET" "$OUT/prompt.txt"
}

command -v python >/dev/null 2>&1 || fail "python is missing"
say "shell $$ with $WORKERS workers"
prepare
search
check
build_prompt
say "finished"
