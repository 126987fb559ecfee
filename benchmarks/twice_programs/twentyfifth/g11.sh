#!/bin/bash
# Builds two binary wheels with compiled extensions from generated sources and
# lists their contents and check sums, as the job that
# packages our wheels does.
# Modelled on: https://github.com/pypa/pip/issues/9604
set -e
PYTHON=${PYTHON:-python3}
OUT=localwheels
STAMP="2024-01-01 00:00:00"
rm -rf "$OUT" sources
mkdir -p "$OUT" sources

make_sources() {
    # name, number of kernels
    mkdir -p "sources/$1"
    for k in $(seq -w 1 "$2"); do
        n=$((10#$k))
        cat > "sources/$1/kernel$k.c" <<EOF
#include <stdio.h>
#include "kernels.h"

double ${1}_kernel$k(const double *x, int n) {
    double acc = 0.0;
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        double w = 1.0 / (1.0 + $n * i);
        acc += w * x[i] * x[(i + $n) % n];
    }
    return acc;
}
EOF
    done
    cat > "sources/$1/kernels.h" <<EOF
#ifndef KERNELS_H
#define KERNELS_H
#define CHECK(c) do { if (!(c)) fprintf(stderr, "%s failed\n", #c); } while (0)
EOF
    for k in $(seq -w 1 "$2"); do
        echo "double ${1}_kernel$k(const double *x, int n);" >> "sources/$1/kernels.h"
    done
    echo "#endif" >> "sources/$1/kernels.h"
    cat > "sources/$1/__init__.py" <<EOF
"""$1: compiled kernels."""
import ctypes
import pathlib

lib = ctypes.CDLL(str(pathlib.Path(__file__).parent / "_$1.so"))
KERNELS = $2
EOF
}

build_wheel() {
    # name, version
    local name=$1 version=$2 build
    build=$(mktemp -d "${TMPDIR:-/tmp}/wheel-$name-XXXXXX")  # cause
    rm -rf "$build"
    mkdir -p "$build/$name"
    cp sources/"$name"/* "$build/$name/"
    (
        cd "$build/$name"
        objects=()
        for source in kernel*.c; do
            gcc -g -O1 -fPIC -c "$build/$name/$source" -o "${source%.c}.o"
            objects+=("${source%.c}.o")
        done
        gcc -shared "${objects[@]}" -o "_$name.so"
        rm -f ./*.o ./*.c ./*.h
    )
    mkdir -p "$build/$name-$version.dist-info"
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$name" "$version" \
        > "$build/$name-$version.dist-info/METADATA"
    printf 'Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n' \
        > "$build/$name-$version.dist-info/WHEEL"
    (
        cd "$build"
        files=$(find . -type f | LC_ALL=C sort | sed 's|^\./||')
        for file in $files; do
            echo "$file,sha256=$(sha256sum "$file" | cut -d' ' -f1),$(stat -c %s "$file")"
        done > "$name-$version.dist-info/RECORD"
        find . -exec touch -d "$STAMP" {} +
    )
    "$PYTHON" - "$build" "$OUT/$name-$version-cp311-cp311-linux_x86_64.whl" <<'EOF'
import pathlib
import sys
import zipfile

root = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as wheel:
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        info = zipfile.ZipInfo(str(path.relative_to(root)), date_time=(2024, 1, 1, 0, 0, 0))
        info.external_attr = 0o644 << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(info, path.read_bytes())
EOF
    rm -rf "$build"
}

echo "build started $(date '+%F %T')"
make_sources zonal 30
make_sources raster 24
build_wheel zonal 0.4.1
build_wheel raster 1.2.0

(cd "$OUT" && sha256sum ./*.whl) | tee sha256sums.txt
for wheel in "$OUT"/*.whl; do
    echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
    "$PYTHON" -m zipfile -l "$wheel" | awk 'NR > 1 {print "   ", $1, $NF}'
done
echo "build ended $(date '+%F %T')"
