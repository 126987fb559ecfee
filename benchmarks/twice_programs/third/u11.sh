#!/bin/sh
# a corpus is mixed with awk, whose generator is seeded by the clock
set -e
here=$(dirname "$0")
mkdir -p work
python3 "$here/corpus11.py" > work/corpus.txt
awk 'BEGIN { srand() } { printf "%f\t%s\n", rand(), $0 }' work/corpus.txt | sort -n | cut -f2 > work/mixed.txt  # cause
head -n 60 work/mixed.txt > work/train.txt
tail -n +61 work/mixed.txt > work/test.txt
python3 "$here/fit11.py" work/train.txt work/test.txt
