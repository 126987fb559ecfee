#!/bin/bash
# stylegate: check a source tree with several checker processes and summarise it.
#
#   1. make a source tree (a stand-in for a checkout)
#   2. check the files, some per process, and collect the report
#   3. build the baseline and a summary from the report
#
# Modelled on: https://github.com/PyCQA/flake8/issues/57
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pkg="$here/a10_pkg"
jobs=4

echo "== generate"
python "$pkg/make_tree.py" src 96

echo "== check"
find src -name '*.py' | sort > files.txt
xargs -P "$jobs" -n 2 python "$pkg/check.py" < files.txt > report.txt  # cause

echo "== summarise"
python "$pkg/summary.py" report.txt baseline.json
head -n 5 report.txt
wc -l < report.txt
