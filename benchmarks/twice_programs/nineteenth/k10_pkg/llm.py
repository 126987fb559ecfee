"""Local text generators (Markov chains) and a pool that runs them in threads."""
import random
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed

WORDS = """the model learns a function from examples and the error becomes smaller with every step
because water moves from the sea to the air and back to the land as rain while prices rise when
demand is larger than supply and plants turn light into sugar so a search halves the range each
time until the value is found and people asked for bread and rights in the old city""".split()


class LocalLLM:
    """Markov text of a given order; every prompt has its own random stream."""

    def __init__(self, name, order, seed):
        self.name = name
        self.order = order
        self.seed = seed
        rng = random.Random(seed)
        corpus = [rng.choice(WORDS) if rng.random() < 0.3 else WORDS[i % len(WORDS)]
                  for i in range(6000)]
        self.table = defaultdict(list)
        for i in range(len(corpus) - order):
            self.table[tuple(corpus[i:i + order])].append(corpus[i + order])
        self.starts = sorted(self.table)

    def generate_one(self, prompt):
        rng = random.Random(zlib.crc32(prompt.encode()) * 31 + self.seed)
        best, best_score = "", -1.0
        for _ in range(300):  # best-of-n decoding
            state = rng.choice(self.starts)
            text = list(state)
            for _ in range(rng.randint(20, 60)):
                options = self.table.get(tuple(text[-self.order:]))
                if not options:
                    break
                text.append(rng.choice(options))
            score = len(set(text)) / len(text) + 0.01 * len(text)
            if score > best_score:
                best, best_score = " ".join(text), score
        return best

    def generate(self, prompts):
        return {"model": self.name, "texts": [self.generate_one(p) for p in prompts]}


def when_all_complete(futures):
    """Wait until every future is done and return the results."""
    results = []
    for future in as_completed(futures):  # cause
        results.append(future.result())
    return results


class LLMPool:
    def __init__(self, llms):
        self.llms = llms
        self.executor = ThreadPoolExecutor(max_workers=8)

    @property
    def names(self):
        return [llm.name for llm in self.llms]

    def generate(self, prompts, num_generations):
        """One entry per prompt, with a generation of each of the models."""
        futures = []
        for prompt in prompts:
            for k in range(num_generations):
                futures.append(self.executor.submit(self.llms[k % len(self.llms)].generate, [prompt]))
        results = when_all_complete(futures)
        grouped = []
        for i in range(len(prompts)):
            chunk = results[i * num_generations:(i + 1) * num_generations]
            grouped.append([(r["model"], r["texts"][0]) for r in chunk])
        return grouped
