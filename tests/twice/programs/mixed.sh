#!/bin/sh
# Mixes lines; a comment that names shuf is none.
seq 1 9 > all.txt
sort -R all.txt > mixed.txt
