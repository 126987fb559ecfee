"""https://github.com/temporalio/sdk-python/issues/429 - asyncio.wait is non-deterministic: it gives the finished tasks
as a set, and tasks hash by their address, so going over `done` takes another order in every run."""
import asyncio
import collections
import json
import math
import random
import time
import zlib

TOPICS = {
    "sport": "match goal team coach league player season final cup record".split(),
    "money": "bank stock rate market price trade fund profit loan tax".split(),
    "health": "doctor virus patient clinic drug trial care nurse diet sleep".split(),
}
COMMON = "the a of in on and for new said year people city time day week after report".split()


def make_corpus(n, seed):
    rng = random.Random(seed)
    docs = []
    for i in range(n):
        topic = rng.choice(sorted(TOPICS))
        words = [rng.choice(TOPICS[topic] if rng.random() < 0.25 else COMMON) for _ in range(rng.randint(15, 40))]
        if rng.random() < 0.3:
            words += rng.sample(TOPICS[rng.choice(sorted(TOPICS))], 3)
        rng.shuffle(words)
        docs.append({"id": i, "topic": topic, "text": " ".join(words)})
    return docs


class Crawler:
    def __init__(self, docs, parallel=500):
        self.docs, self.parallel, self.fetched = docs, parallel, 0

    async def fetch(self, doc):
        payload = zlib.compress(json.dumps(doc).encode())
        await asyncio.sleep(0)
        self.fetched += 1
        return json.loads(zlib.decompress(payload))

    async def collect(self):
        out = []
        for i in range(0, len(self.docs), self.parallel):
            tasks = [asyncio.create_task(self.fetch(d)) for d in self.docs[i:i + self.parallel]]
            done, _ = await asyncio.wait(tasks)  # cause
            out.extend(task.result() for task in done)  # cause
        return out


class OnlineSoftmax:
    """Averaged multiclass perceptron with log-loss updates, one pass at a time."""

    def __init__(self, classes, lr=0.3):
        self.classes, self.lr = classes, lr
        self.w = {c: collections.defaultdict(float) for c in classes}

    def scores(self, words):
        raw = {c: sum(self.w[c][t] for t in words) / math.sqrt(len(words)) for c in self.classes}
        top = max(raw.values())
        z = sum(math.exp(v - top) for v in raw.values())
        return {c: math.exp(v - top) / z for c, v in raw.items()}

    def update(self, words, topic):
        p = self.scores(words)
        for c in self.classes:
            g = (1.0 if c == topic else 0.0) - p[c]
            for t in words:
                self.w[c][t] += self.lr * g / math.sqrt(len(words))
        return -math.log(max(p[topic], 1e-12))


async def main(seed=6):
    random.seed(seed)
    t0 = time.perf_counter()
    docs = make_corpus(6400, seed)
    crawler = Crawler(docs[:6000])
    train = await crawler.collect()
    print(f"fetched {crawler.fetched} documents in {time.perf_counter() - t0:.2f}s")
    model = OnlineSoftmax(sorted(TOPICS))
    losses = []
    for epoch in range(6):
        total = sum(model.update(d["text"].split(), d["topic"]) for d in train)
        losses.append(total / len(train))
        random.shuffle(train)
        print(f"[{time.strftime('%X')}] epoch {epoch} log loss {losses[-1]:.6f}")
    hits = 0
    for d in docs[6000:]:
        p = model.scores(d["text"].split())
        hits += max(p, key=p.get) == d["topic"]
    top = {c: sorted(((w, round(v, 8)) for w, v in model.w[c].items()), key=lambda kv: -kv[1])[:8] for c in model.classes}
    with open("topics.json", "w") as f:
        json.dump({"losses": losses, "accuracy": hits / 400, "top": top}, f, indent=1)
    print("test accuracy", hits / 400)


if __name__ == "__main__":
    asyncio.run(main())
