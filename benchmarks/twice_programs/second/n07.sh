#!/bin/sh
# tesstrain#76: the lines are mixed before they are split
seq 1 40 > all.txt
shuf all.txt > mixed.txt  # cause
head -n 30 mixed.txt > train.txt
python - <<'P'
rows = [int(line) for line in open("train.txt")]
print("weighted", sum(n * row for n, row in enumerate(rows)))
P
