#!/bin/bash
# Modelled on https://github.com/ksahlin/strobealign/issues/121
# Simulates reads, seeds and aligns them in chunks to a reference, and calls variants.
set -euo pipefail

PY=${PYTHON:-python3}
WORK=align_run
CHUNKS=6
READS=900
SEED=20
MAX_DEPTH=12
export WORK CHUNKS READS SEED MAX_DEPTH

log() { echo "[$(date +%H:%M:%S)] $*" >&2; }

mkdir -p "$WORK/chunks"

cat > "$WORK/common.py" <<'PYEOF'
import os

WORK = os.environ["WORK"]
CHUNKS = int(os.environ["CHUNKS"])
READS = int(os.environ["READS"])
SEED = int(os.environ["SEED"])
MAX_DEPTH = int(os.environ["MAX_DEPTH"])
READ_LENGTH = 80
KMER = 14


def path(*parts):
    return os.path.join(WORK, *parts)


def read_fasta(name):
    with open(path(name)) as fh:
        return "".join(line.strip() for line in fh if not line.startswith(">"))


def read_fastq(name):
    with open(path(name)) as fh:
        while True:
            header = fh.readline().rstrip()
            if not header:
                return
            sequence = fh.readline().rstrip()
            fh.readline()
            quality = fh.readline().rstrip()
            yield header[1:], sequence, quality
PYEOF

cat > "$WORK/simulate.py" <<'PYEOF'
import random

from common import CHUNKS, READ_LENGTH, READS, SEED, path

rng = random.Random(SEED)
reference = "".join(rng.choice("ACGT") for _ in range(3000))
sample = list(reference)
truth = []
for position in sorted(rng.sample(range(100, 2900), 25)):
    alt = rng.choice([b for b in "ACGT" if b != reference[position]])
    sample[position] = alt
    truth.append((position, reference[position], alt))
sample = "".join(sample)

with open(path("reference.fa"), "w") as fh:
    fh.write(">ref\n" + reference + "\n")
with open(path("truth.tsv"), "w") as fh:
    for row in truth:
        fh.write("%d\t%s\t%s\n" % row)

handles = [open(path("chunks", f"chunk_{c}.fq"), "w") for c in range(CHUNKS)]
for i in range(READS):
    haplotype = sample if rng.random() < 0.5 else reference
    start = rng.randrange(len(haplotype) - READ_LENGTH)
    bases = list(haplotype[start:start + READ_LENGTH])
    quality = []
    for j in range(READ_LENGTH):
        q = rng.randint(12, 40)
        if rng.random() < 10 ** (-q / 10):
            bases[j] = rng.choice("ACGT")
        quality.append(chr(33 + q))
    handles[i * CHUNKS // READS].write(
        f"@read{i:05d}\n{''.join(bases)}\n+\n{''.join(quality)}\n")
for handle in handles:
    handle.close()
print(f"simulated {READS} reads, {len(truth)} variants")
PYEOF

cat > "$WORK/align.py" <<'PYEOF'
import sys
from collections import Counter, defaultdict

from common import KMER, read_fasta, read_fastq

reference = read_fasta("reference.fa")
index = defaultdict(list)
for i in range(len(reference) - KMER + 1):
    index[reference[i:i + KMER]].append(i)

records = []
for name, sequence, quality in read_fastq(sys.argv[1]):
    votes = Counter()
    for offset in range(0, len(sequence) - KMER + 1, 3):
        for hit in index.get(sequence[offset:offset + KMER], ()):
            votes[hit - offset] += 1
    if not votes:
        continue
    start, support = min(votes.items(), key=lambda kv: (-kv[1], kv[0]))
    if start < 0 or start + len(sequence) > len(reference):
        continue
    window = reference[start:start + len(sequence)]
    mismatches = sum(a != b for a, b in zip(window, sequence))
    records.append(f"{name}\t{start}\t{support}\t{mismatches}\t{sequence}\t{quality}\n")
sys.stdout.write("".join(records))
PYEOF

cat > "$WORK/call.py" <<'PYEOF'
import json
from collections import defaultdict

from common import MAX_DEPTH, path, read_fasta

reference = read_fasta("reference.fa")
pileup = defaultdict(list)
used = skipped = 0
with open(path("alignments.tsv")) as fh:
    for line in fh:
        name, start, support, mismatches, sequence, quality = line.rstrip("\n").split("\t")
        start = int(start)
        if int(mismatches) > 6:
            skipped += 1
            continue
        used += 1
        for j, (base, q) in enumerate(zip(sequence, quality)):
            column = pileup[start + j]
            if len(column) < MAX_DEPTH:
                column.append((base, ord(q) - 33))

calls = []
for position in sorted(pileup):
    column = pileup[position]
    weight = defaultdict(float)
    for base, q in column:
        weight[base] += 1 - 10 ** (-q / 10)
    total = sum(weight.values())
    ref = reference[position]
    for base in sorted(weight):
        fraction = weight[base] / total
        if base != ref and fraction > 0.25 and len(column) >= 5:
            calls.append((position, ref, base, len(column), fraction))

with open(path("variants.tsv"), "w") as out:
    out.write("position\tref\talt\tdepth\tfraction\n")
    for position, ref, alt, depth, fraction in calls:
        out.write(f"{position}\t{ref}\t{alt}\t{depth}\t{fraction:.5f}\n")
mean_depth = sum(map(len, pileup.values())) / len(pileup)
with open(path("call_stats.json"), "w") as out:
    json.dump({"used": used, "skipped": skipped, "calls": len(calls),
               "mean_depth": round(mean_depth, 5)}, out, indent=1)
print(f"{used} alignments used, {skipped} skipped, mean depth {mean_depth:.3f}")
PYEOF

cat > "$WORK/evaluate.py" <<'PYEOF'
from common import path

truth = set()
with open(path("truth.tsv")) as fh:
    for line in fh:
        position, ref, alt = line.split()
        truth.add((int(position), alt))
found = {}
with open(path("variants.tsv")) as fh:
    next(fh)
    for line in fh:
        position, ref, alt, depth, fraction = line.split()
        found[(int(position), alt)] = float(fraction)
hits = truth & set(found)
recall = len(hits) / len(truth)
precision = len(hits) / max(1, len(found))
balance = sum(found[h] for h in hits) / max(1, len(hits))
print(f"calls {len(found)}  recall {recall:.3f}  precision {precision:.3f}")
print(f"mean allele fraction of true calls {balance:.5f}")
PYEOF

log "simulating"
"$PY" "$WORK/simulate.py"

log "aligning $CHUNKS chunks"
: > "$WORK/alignments.tsv"
for ((c = 0; c < CHUNKS; c++)); do
    "$PY" "$WORK/align.py" "chunks/chunk_$c.fq" >> "$WORK/alignments.tsv" &  # cause
done
wait
log "$(wc -l < "$WORK/alignments.tsv") alignments"

log "calling variants"
"$PY" "$WORK/call.py"
log "evaluating"
"$PY" "$WORK/evaluate.py" | tee "$WORK/evaluation.txt"
rm -rf "$WORK/__pycache__"
