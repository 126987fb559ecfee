#!/bin/bash
# Coverage of a small geometry library over its test suites.
#
# Every suite runs in a process of its own that writes its raw coverage to a
# temporary folder; the report step loads all of them, merges the counters, and
# prints which suite reached each function first and the remaining gaps.
#
# Modelled on: https://github.com/bcoe/c8/issues/16
set -eu

here=$(dirname "$0")
tool=$here/c13_pkg
tmp=coverage/tmp
mkdir -p "$tmp"

for suite in points polygons hulls curves grids meshes; do
    python "$tool/wrap.py" --temp-directory "$tmp" --suite "$suite"
done

python "$tool/report.py" --temp-directory "$tmp" --out coverage/coverage-final.json --min-gain 2
echo "$(ls "$tmp" | wc -l) raw files merged"
