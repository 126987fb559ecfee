"""Supervised bag-of-n-grams text classifier with fastText's console output.

Output format: fasttext supervised / test (progress line with words/sec/thread,
lr, loss and ETA), its .vec text file; one JSON line per update as in issue 604.
Seen at: https://github.com/facebookresearch/fastText/issues/451
         https://github.com/facebookresearch/fastText/issues/604
Field: natural language processing.
"""
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import zipfile

import numpy as np

TOPICS = {
    "cooking": "bake oven flour sugar butter salt simmer stew roast pan knife dough".split(),
    "garden": "soil seed prune leaf root mulch water bloom shrub lawn spade frost".split(),
    "travel": "train ticket hotel border visa luggage flight map coast tour ferry guide".split(),
    "music": "chord tempo violin bass melody tune drum scale tenor score choir note".split(),
}
COMMON = "the a of and to in is with how can my best for on very some long".split()
DIM, BUCKET, EPOCH, LR, SEED = 24, 4096, 8, 0.25, 11


def fnv(text):
    h = 2166136261
    for byte in text.encode():
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return h


def corpus(n, seed):
    rng, rows = random.Random(seed), []
    labels = sorted(TOPICS)
    for _ in range(n):
        label = rng.choice(labels)
        words = []
        for _ in range(rng.randint(6, 12)):
            r = rng.random()
            if r < 0.18:
                words.append(rng.choice(TOPICS[label]))
            elif r < 0.30:
                words.append(rng.choice(TOPICS[rng.choice(labels)]))
            else:
                words.append(rng.choice(COMMON))
        rows.append((f"__label__{label}", words))
    return rows


def features(words, vocab):
    ids = [vocab[w] for w in words if w in vocab]
    ids += [len(vocab) + fnv(a + " " + b) % BUCKET for a, b in zip(words, words[1:])]
    return ids


def hms(seconds):
    return f"{int(seconds // 3600):d}h{int(seconds % 3600 // 60):2d}m{int(seconds % 60):2d}s"


def main():
    work = tempfile.mkdtemp(prefix="fasttext_")
    try:
        path = os.path.join(work, "train.txt")
        train, test = corpus(2500, 1), corpus(600, 2)
        with open(path, "w") as fh:
            for label, words in train:
                fh.write(f"{label} {' '.join(words)}\n")
        print(f"$ fasttext supervised -input {path} -output model -wordNgrams 2 -dim {DIM} -epoch {EPOCH} -lr {LR} -thread 1")
        tokens = sum(len(w) + 1 for _, w in train)
        vocab = {w: i for i, w in enumerate(sorted({w for _, ws in train for w in ws}))}
        labels = sorted({l for l, _ in train})
        print(f"Read 0M words\nNumber of words:  {len(vocab)}\nNumber of labels: {len(labels)}")
        rng = np.random.default_rng(SEED)
        emb = rng.uniform(-1 / DIM, 1 / DIM, (len(vocab) + BUCKET, DIM))
        out = np.zeros((len(labels), DIM))
        data = [(labels.index(l), features(w, vocab), len(w) + 1) for l, w in train]
        total, seen, loss_sum, count = tokens * EPOCH, 0, 0.0, 0
        next_mark, start = 0.0, time.perf_counter()
        trace = open("progress.jsonl", "w")
        for _ in range(EPOCH):
            for y, ids, n_tok in data:
                progress = seen / total
                lr = LR * (1 - progress)
                hidden = emb[ids].mean(0)
                score = out @ hidden
                p = np.exp(score - score.max())
                p /= p.sum()
                loss_sum -= float(np.log(p[y]))
                count += 1
                p[y] -= 1
                grad = (p @ out) * (lr / len(ids))
                out -= lr * np.outer(p, hidden)
                np.subtract.at(emb, ids, grad)
                seen += n_tok
                if progress >= next_mark:
                    next_mark += 0.05
                    secs = time.perf_counter() - start
                    wst = seen / secs
                    eta = secs / max(progress, 1e-6) * (1 - progress) if progress else 0
                    sys.stderr.write(f"\rProgress: {100 * progress:5.1f}% words/sec/thread: {wst:7.0f} lr: {lr:9.6f} "
                                     f"avg.loss: {loss_sum / count:9.6f} ETA: {hms(eta)}")
                    trace.write(json.dumps({"progress": round(100 * progress, 1), "loss": round(loss_sum / count, 6),
                                            "lr": round(lr, 6), "words": int(wst), "eta": hms(eta),
                                            "eta_msec": int(eta * 1000), "thread": threading.current_thread().name}) + "\n")
        secs = time.perf_counter() - start
        trace.close()
        sys.stderr.write(f"\rProgress: 100.0% words/sec/thread: {seen / secs:7.0f} lr:  0.000000 avg.loss: {loss_sum / count:9.6f} ETA: {hms(0)}\n")
        print(f"Progress: 100.0% words/sec/thread: {seen / secs:7.0f} lr:  0.000000 avg.loss: {loss_sum / count:9.6f} ETA: {hms(0)}")
        with open("model.vec", "w") as fh:
            fh.write(f"{len(vocab)} {DIM}\n")
            for w, i in vocab.items():
                fh.write(w + " " + " ".join(f"{v:.5g}" for v in emb[i]) + "\n")
        meta = {"saved": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "input": path, "wall_seconds": secs, "pid": os.getpid(),
                "labels": labels, "final_loss": loss_sum / count}
        with open("model.json", "w") as fh:
            json.dump(meta, fh, indent=1)
        with zipfile.ZipFile("model.ftz", "w", zipfile.ZIP_DEFLATED) as z:
            z.write("model.vec")
            z.write("model.json")
        hits, per = 0, {l: [0, 0, 0] for l in labels}
        t = time.perf_counter()
        for label, words in test:
            guess = labels[int(np.argmax(out @ emb[features(words, vocab)].mean(0)))]
            hits += guess == label
            per[label][2] += 1
            per[guess][1] += 1
            per[label][0] += guess == label
        took = time.perf_counter() - t
        print(f"$ fasttext test-label model.ftz {os.path.join(work, 'test.txt')}   # {len(test) / took:.0f} lines/s")
        for l in labels:
            ok, said, real = per[l]
            prec, rec = ok / max(said, 1), ok / real
            print(f"F1-Score : {2 * prec * rec / (prec + rec):.6f}  Precision : {prec:.6f}  Recall : {rec:.6f}   {l}")
        print(f"N\t{len(test)}\nP@1\t{hits / len(test):.3f}\nR@1\t{hits / len(test):.3f}")
        probe = vocab["violin"]
        sims = emb[:len(vocab)] @ emb[probe] / (np.linalg.norm(emb[:len(vocab)], axis=1) * np.linalg.norm(emb[probe]))
        names = list(vocab)
        print("Query word? violin")
        for i in np.argsort(-sims, kind="stable")[1:6]:
            print(f"{names[i]} {sims[i]:.6f}")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
