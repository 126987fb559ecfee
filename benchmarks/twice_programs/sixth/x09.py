"""https://github.com/allenai/allennlp/pull/2729 - the reader process shuffles with random.shuffle, but the random module starts unseeded in every newly spawned process."""
import json
import multiprocessing as mp
import os
import random
import time

import numpy as np

SEED = 13370
LABELS = ("sports", "politics", "cooking")


def set_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)


def synthetic_instances(n=2700):
    rng = np.random.RandomState(5)
    bank = {lab: rng.permutation(300)[:90] for lab in LABELS}
    out = []
    for i in range(n):
        lab = LABELS[i % 3]
        words = np.where(rng.rand(25) < 0.35, rng.choice(bank[lab], 25), rng.randint(0, 300, 25))
        out.append({"tokens": [f"w{w}" for w in words], "label": lab})
    return out


def write_shards(instances, folder, shards=3):
    os.makedirs(folder, exist_ok=True)
    paths = []
    for k in range(shards):
        path = os.path.join(folder, f"part-{k}.jsonl")
        with open(path, "w") as f:
            for inst in instances[k::shards]:
                f.write(json.dumps(inst) + "\n")
        paths.append(path)
    return paths


def read_instances(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


class QueueReader:
    """Reads shards in one background process, so that parsing overlaps with training."""

    def __init__(self, paths, epochs):
        self.paths, self.epochs = paths, epochs

    @staticmethod
    def _produce(paths, epochs, queue):
        for epoch in range(epochs):
            for path in paths:
                instances = read_instances(path)
                random.shuffle(instances)  # cause
                for inst in instances:
                    queue.put((epoch, inst))
        queue.put(None)

    def __iter__(self):
        ctx = mp.get_context("spawn")
        queue = ctx.Queue(maxsize=200)
        proc = ctx.Process(target=self._produce, args=(self.paths, self.epochs, queue))
        proc.start()
        while True:
            item = queue.get()
            if item is None:
                break
            yield item
        proc.join()


class SoftmaxRegression:
    def __init__(self, dim, classes):
        self.w = np.random.normal(0, 0.01, (dim, classes))
        self.b = np.zeros(classes)

    def probs(self, x):
        z = x @ self.w + self.b
        z -= z.max(axis=1, keepdims=True)
        e = np.exp(z)
        return e / e.sum(axis=1, keepdims=True)

    def step(self, x, y, lr):
        p = self.probs(x)
        loss = -np.log(p[np.arange(len(y)), y] + 1e-12).mean()
        p[np.arange(len(y)), y] -= 1.0
        self.w -= lr * x.T @ p / len(y)
        self.b -= lr * p.mean(axis=0)
        return float(loss)


def featurize(batch, dim=300):
    x = np.zeros((len(batch), dim))
    for row, inst in enumerate(batch):
        for tok in inst["tokens"]:
            x[row, int(tok[1:])] += 1.0
    y = np.array([LABELS.index(inst["label"]) for inst in batch])
    return x, y


def main():
    set_seeds(SEED)
    t0 = time.time()
    instances = synthetic_instances()
    paths = write_shards(instances[:2100], "shards")
    model = SoftmaxRegression(300, len(LABELS))
    batch, losses, per_epoch = [], [], {}
    for epoch, inst in QueueReader(paths, epochs=8):
        batch.append(inst)
        if len(batch) == 24:
            loss = model.step(*featurize(batch), lr=0.3)
            per_epoch.setdefault(epoch, []).append(loss)
            batch = []
    for epoch, values in per_epoch.items():
        losses.append(float(np.mean(values)))
        print(f"epoch {epoch}: loss {losses[-1]:.6f}  elapsed {time.time() - t0:.2f}s")
    x, y = featurize(instances[2100:])
    acc = float((model.probs(x).argmax(1) == y).mean())
    with open("metrics.json", "w") as f:
        json.dump({"training_loss": losses, "test_accuracy": acc, "weight_norm": float(np.linalg.norm(model.w)),
                   "finished": time.ctime(), "pid": os.getpid()}, f, indent=1)
    print("test accuracy", acc)


if __name__ == "__main__":
    main()
