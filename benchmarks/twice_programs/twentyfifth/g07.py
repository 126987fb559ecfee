"""Small retrieval pipeline: texts are embedded in batches, stored, and queried.

The vector store embeds its texts concurrently (the embedding function is slow
and runs in threads), keeps name, text and vector of each entity, and answers
queries with the nearest entities. Recall over all queries is printed.

Modelled on: https://github.com/HKUDS/LightRAG/pull/464
"""
import asyncio
import json
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

DIM = 256
BATCH = 12
TOPICS = {
    "harbour": "ship crane dock tide cargo pilot anchor container quay vessel".split(),
    "kitchen": "oven spoon flour butter pan recipe salt onion knife simmer".split(),
    "orchard": "apple prune graft blossom ladder cider pear harvest frost bee".split(),
    "railway": "track signal platform engine carriage guard ticket tunnel bridge timetable".split(),
    "studio": "canvas brush easel pigment sketch portrait varnish frame palette light".split(),
}
COMMON = "the a of and with near under about over into then also old new first last".split()


def make_entities(count, seed):
    rng = np.random.default_rng(seed)
    topics = sorted(TOPICS)
    entities = []
    for i in range(count):
        topic = topics[int(rng.integers(len(topics)))]
        length = int(rng.integers(20, 220))
        words = [str(rng.choice(TOPICS[topic])) if rng.random() < 0.45 else str(rng.choice(COMMON))
                 for _ in range(length)]
        entities.append({"name": f"{topic}-{i:04d}", "topic": topic, "text": " ".join(words)})
    return entities


def embed_batch(texts):
    """Hashed word and bigram features, projected: stands for a model call."""
    out = np.zeros((len(texts), DIM))
    for row, text in enumerate(texts):
        words = text.split()
        grams = words + [a + "_" + b for a, b in zip(words, words[1:])]
        for gram in grams:
            code = zlib.crc32(gram.encode())
            out[row, code % DIM] += 1.0 if code & 0x10000 else -1.0
    out /= np.linalg.norm(out, axis=1, keepdims=True) + 1e-9
    mix = np.cos(np.arange(DIM)[:, None] * np.arange(DIM)[None, :] * np.pi / DIM)
    return out @ mix / np.sqrt(DIM)


class Embedder:
    def __init__(self, workers):
        self.pool = ThreadPoolExecutor(max_workers=workers)
        self.calls = 0

    async def __call__(self, texts):
        self.calls += 1
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, embed_batch, texts)

    def close(self):
        self.pool.shutdown()


class VectorStore:
    def __init__(self, embedder):
        self.embedder = embedder
        self.records = []
        self.matrix = np.zeros((0, DIM))

    async def upsert(self, entities):
        contents = [e["text"] for e in entities]
        batches = [contents[i:i + BATCH] for i in range(0, len(contents), BATCH)]
        tasks = [asyncio.create_task(self.embedder(batch)) for batch in batches]
        embeddings = []
        for future in asyncio.as_completed(tasks):  # cause
            embeddings.append(await future)
        vectors = np.concatenate(embeddings)
        self.records.extend({"name": e["name"], "topic": e["topic"]} for e in entities)
        self.matrix = np.vstack([self.matrix, vectors])

    async def query(self, text, top_k=5):
        vector = (await self.embedder([text]))[0]
        scores = self.matrix @ vector
        best = np.argsort(-scores, kind="stable")[:top_k]
        return [(self.records[i], float(scores[i])) for i in best]


async def evaluate(store, seed):
    rng = np.random.default_rng(seed)
    answers, right, total = [], 0, 0
    for topic in sorted(TOPICS):
        for q in range(12):
            words = [str(w) for w in rng.choice(TOPICS[topic], 4, replace=False)]
            hits = await store.query(" ".join(words))
            right += sum(record["topic"] == topic for record, _ in hits)
            total += len(hits)
            answers.append({"query": words, "hits": [record["name"] for record, _ in hits]})
    return answers, right / total


async def run():
    began = time.time()
    entities = make_entities(1500, seed=3)
    embedder = Embedder(workers=4)
    store = VectorStore(embedder)
    for start in range(0, len(entities), 500):
        await store.upsert(entities[start:start + 500])
        print(f"stored {len(store.records)} entities")
    answers, precision = await evaluate(store, seed=4)
    embedder.close()
    with open("answers.json", "w") as f:
        json.dump(answers, f, indent=1)
    print(f"precision at 5 over {len(answers)} queries: {precision:.4f}")
    for answer in answers[::12]:
        print(" ".join(answer["query"]) + " -> " + ", ".join(answer["hits"][:3]))
    print(f"{embedder.calls} embedding calls, {time.time() - began:.1f} s")


if __name__ == "__main__":
    asyncio.run(run())
