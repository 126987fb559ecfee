#!/bin/bash
# Modelled on https://github.com/princeton-nlp/HELMET/pull/44
# Prepares a small reading comprehension set, evaluates a count-based reader with demonstrations and tabulates the scores.
set -euo pipefail

PYTHON=${PYTHON:-python3}
SEED=${SEED:-42}
SHOTS=${SHOTS:-2}
N_BOOKS=${N_BOOKS:-60}
OUT=${OUT:-results}
export HF_DATASETS_OFFLINE=1 HF_DATASETS_DISABLE_PROGRESS_BARS=1

log() { echo "[$(date +%H:%M:%S)] $*" >&2; }

mkdir -p data "$OUT"

log "step 1: prepare"
cat > data/prepare.py <<'PY'
import argparse
import json
import random
from pathlib import Path

NAMES = "Mara Tomas Lena Oskar Ruth Viktor Clara Emil Nora Jonas".split()
PLACES = "harbour mill library station orchard lighthouse market chapel bridge quarry".split()
THINGS = "letter lantern compass violin ledger key portrait map coat ring".split()
ACTS = "hides finds loses sells steals repairs burns buries returns forges".split()
FILL = "rain falls over the town and nobody speaks while bells ring far away in the cold evening".split()


def book(rnd, i):
    facts, story = [], []
    for _ in range(rnd.randint(6, 10)):
        who, act, thing, place = (rnd.choice(x) for x in (NAMES, ACTS, THINGS, PLACES))
        facts.append((who, act, thing, place))
        story.append(f"{who} {act} the {thing} near the {place} .")
        story.append(" ".join(rnd.choices(FILL, k=rnd.randint(5, 14))) + " .")
    who, act, thing, place = rnd.choice(facts)
    kind = rnd.randrange(3)
    if kind == 0:
        q, a = f"where does {who} work with the {thing} ?", f"near the {place}"
    elif kind == 1:
        q, a = f"what does {who} do near the {place} ?", f"{act} the {thing}"
    else:
        q, a = f"who {act} the {thing} near the {place} ?", who
    return {"id": f"book-{i:03d}", "context": " ".join(story), "question": q, "answer": a}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    args = ap.parse_args()
    rnd = random.Random(args.seed)
    for split, n in (("train", 2 * args.n), ("test", args.n)):
        rows = [book(rnd, i) for i in range(n)]
        Path(f"data/{split}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        print(f"{split}: {n} books")


main()
PY
"$PYTHON" data/prepare.py --n "$N_BOOKS" --seed "$SEED"

log "step 2: evaluate"
cat > data/evaluate.py <<'PY'
import argparse
import json
import math
import random
import re
import time
from collections import Counter, defaultdict
from pathlib import Path

from datasets import Dataset


def load(path):
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return Dataset.from_dict({k: [r[k] for r in rows] for k in rows[0]})


def load_qa(args):
    """Test examples with the demonstrations for each of them."""
    train, test = load("data/train.jsonl"), load("data/test.jsonl")
    samples = []
    for row in test:
        demos = train.shuffle().select(range(args.shots))  # cause
        prompt = "\n\n".join(
            f"Story: {d['context']}\nQuestion: {d['question']}\nAnswer: {d['answer']}" for d in demos
        )
        samples.append({**row, "demos": [d["id"] for d in demos], "prompt": prompt})
    return samples


class CountReader:
    """Interpolated trigram model over the prompt, decoded greedily from the question."""

    def __init__(self, max_new=6, window=30):
        self.max_new = max_new
        self.window = window

    def _tables(self, tokens):
        tri, bi, uni = defaultdict(Counter), defaultdict(Counter), Counter(tokens)
        for i in range(1, len(tokens)):
            bi[tokens[i - 1]][tokens[i]] += 1
            if i > 1:
                tri[tokens[i - 2], tokens[i - 1]][tokens[i]] += 1
        return tri, bi, uni

    def generate(self, prompt, context, question):
        text = f"{prompt}\n\nStory: {context}\nQuestion: {question}\nAnswer:"
        tokens = re.findall(r"[A-Za-z]+:|\w+|[.?]", text)
        tri, bi, uni = self._tables(tokens)
        wanted = Counter(t for t in question.split() if len(t) > 3)
        total = sum(uni.values())
        out, logp = [], 0.0
        a, b = tokens[-2], tokens[-1]
        for _ in range(self.max_new):
            scores = {}
            for w, c in uni.items():
                p = 0.05 * c / total
                if bi[b]:
                    p += 0.35 * bi[b][w] / sum(bi[b].values())
                if tri[a, b]:
                    p += 0.60 * tri[a, b][w] / sum(tri[a, b].values())
                scores[w] = p * (1 + 2 * wanted[w]) * (0.2 if w in out else 1.0)
            best = max(sorted(scores), key=scores.get)
            logp += math.log(scores[best])
            if best.endswith(":") or best in ".?":
                break
            out.append(best)
            a, b = b, best
        return " ".join(out), logp


def f1(pred, gold):
    p, g = Counter(pred.lower().split()), Counter(gold.lower().split())
    hit = sum((p & g).values())
    return 0.0 if not hit else 2 * hit / (sum(p.values()) + sum(g.values()))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--shots", type=int, default=2)
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    random.seed(args.seed)
    reader = CountReader()
    start = time.time()
    samples = load_qa(args)
    with open(args.out, "w") as f:
        for s in samples:
            pred, logp = reader.generate(s["prompt"], s["context"], s["question"])
            row = {
                "id": s["id"],
                "demos": s["demos"],
                "prediction": pred,
                "answer": s["answer"],
                "logp": round(logp, 5),
                "f1": round(f1(pred, s["answer"]), 5),
            }
            f.write(json.dumps(row) + "\n")
    print(f"evaluated {len(samples)} samples with {args.shots} shots")
    return time.time() - start


main()
PY
"$PYTHON" data/evaluate.py --shots "$SHOTS" --seed "$SEED" --out "$OUT/predictions.jsonl"

log "step 3: tabulate"
"$PYTHON" - "$OUT" <<'PY'
import json
import sys
from pathlib import Path

out = Path(sys.argv[1])
rows = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
mean = sum(r["f1"] for r in rows) / len(rows)
exact = sum(r["prediction"].lower() == r["answer"].lower() for r in rows)
logp = sum(r["logp"] for r in rows) / len(rows)
print(f"f1 {mean:.5f}  exact {exact}/{len(rows)}  mean logp {logp:.5f}")
by_len = {}
for r in rows:
    by_len.setdefault(len(r["answer"].split()), []).append(r["f1"])
for k in sorted(by_len):
    print(f"  answers of {k} words: {sum(by_len[k]) / len(by_len[k]):.5f} ({len(by_len[k])})")
(out / "scores.json").write_text(json.dumps({"f1": mean, "exact": exact, "logp": logp}))
PY
log "done"
