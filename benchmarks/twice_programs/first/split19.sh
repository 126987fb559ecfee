#!/bin/sh
# lines of a file into two parts
set -e
seq 1 60 > all.txt
sort -R all.txt > mixed.txt  # cause
head -n 45 mixed.txt > train.txt
tail -n 15 mixed.txt > test.txt
