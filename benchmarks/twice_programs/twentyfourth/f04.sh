#!/bin/bash
# Nightly release of a gazetteer: make the tables, check them, pack them into a
# tarball with a manifest of checksums, and compare with what the mirror wants.
#
# Modelled on: http://blog.experimentalworks.net/2007/12/interesting-gzip-behaviour/
set -euo pipefail
here=$(dirname "$0")
here=$(cd -P "$here" && pwd)
tools=$here/f04_pkg
stamp="2021-03-01 00:00:00 UTC"
name=gazetteer-1.4

say() { printf '%s %s\n' "$(date +%T)" "$*" >&2; }

say "building tables"
mkdir -p "$name/tables" "$name/doc"
python "$tools/build_tables.py" --places 9000 --seed 5 --dir "$name/tables"
python "$tools/check_tables.py" --dir "$name/tables" > "$name/doc/CHECK.txt"
printf 'Gazetteer release %s\nTables are tab separated.\n' "$name" > "$name/doc/README.txt"

say "packing"
pack() {
    find "$1" -type f | LC_ALL=C sort > files.lst
    tar --mtime="$stamp" --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w \
        --no-recursion -c -f - -T files.lst > "$1.tar"
    python "$tools/compress.py" "$1.tar" "$1.tar.gz"
    rm "$1.tar"
}
pack "$name"

say "manifest"
sha256sum "$name.tar.gz" $(cat files.lst) > MANIFEST.sha256
python "$tools/mirror_diff.py" --manifest MANIFEST.sha256 --known known.txt
find "$name" -exec touch -d "$stamp" {} +
cat "$name/doc/CHECK.txt"
head -n 1 MANIFEST.sha256
