"""recipevec: word embeddings for a corpus of recipes and what they say about ingredients.

A corpus of recipes with a latent cuisine is generated from a seed, a skip-gram model
is trained on it, and ingredients are grouped by their vectors.  Vectors are saved to
``vectors.txt``, the neighbours to ``neighbours.tsv``.

Modelled on: https://github.com/piskvorky/gensim/issues/546
"""
import csv
import json
import logging
import random
import time
from dataclasses import dataclass

import numpy as np
from gensim.models import Word2Vec

log = logging.getLogger("recipevec")

CUISINES = ["andean", "baltic", "coastal", "delta", "eastern", "fjord"]
STEPS = ["chop", "boil", "fry", "stir", "bake", "season", "simmer", "serve", "rest", "mix"]


@dataclass(frozen=True)
class Settings:
    recipes: int = 5000
    ingredients: int = 360
    vector_size: int = 32
    window: int = 5
    epochs: int = 3
    seed: int = 128


class RecipeCorpus:
    """Sentences with ingredients of one cuisine and some steps between."""

    def __init__(self, settings):
        self.settings = settings
        self.random = random.Random(settings.seed)
        names = [f"ing{i:03d}" for i in range(settings.ingredients)]
        self.pantry = {c: names[k::len(CUISINES)] for k, c in enumerate(CUISINES)}
        self.common = self.random.sample(names, 30)

    def cuisine_of(self, ingredient):
        for cuisine, names in self.pantry.items():
            if ingredient in names:
                return cuisine
        return None

    def _pick(self, cuisine):
        if self.random.random() < 0.2:
            return self.random.choice(self.common)
        pantry = self.pantry[cuisine]
        return pantry[int(len(pantry) * self.random.random() ** 1.6)]

    def recipe(self):
        cuisine = self.random.choice(CUISINES)
        words = []
        for _ in range(self.random.randint(8, 16)):
            words.append(self.random.choice(STEPS))
            words.append(self._pick(cuisine))
            if self.random.random() < 0.3:
                words.append(self._pick(cuisine))
        return words

    def sentences(self):
        return [self.recipe() for _ in range(self.settings.recipes)]


def train(sentences, settings):
    started = time.perf_counter()
    model = Word2Vec(sentences, vector_size=settings.vector_size, window=settings.window, min_count=5, sg=1, negative=5, workers=4, epochs=settings.epochs, seed=settings.seed)  # cause
    log.info("trained %d vectors in %.2fs", len(model.wv), time.perf_counter() - started)
    return model.wv


def purity(vectors, corpus, topn=5):
    """Share of the nearest ingredients that belong to the same cuisine."""
    good = total = 0
    for word in sorted(vectors.key_to_index):
        cuisine = corpus.cuisine_of(word)
        if cuisine is None:
            continue
        near = [w for w, _ in vectors.most_similar(word, topn=15) if corpus.cuisine_of(w)]
        for other in near[:topn]:
            total += 1
            good += corpus.cuisine_of(other) == cuisine
    return good / total


def centroids(vectors, corpus):
    out = {}
    for cuisine, names in corpus.pantry.items():
        rows = [vectors[n] for n in names if n in vectors]
        out[cuisine] = np.mean(rows, axis=0)
    return out


def cuisine_table(centres):
    table = {}
    for a in CUISINES:
        va = centres[a] / np.linalg.norm(centres[a])
        table[a] = {b: round(float(va @ centres[b] / np.linalg.norm(centres[b])), 5)
                    for b in CUISINES}
    return table


def save_vectors(vectors, path):
    with open(path, "w") as fh:
        for word in sorted(vectors.key_to_index):
            fh.write(word + " " + " ".join(f"{x:.6f}" for x in vectors[word]) + "\n")


def save_neighbours(vectors, path):
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh, delimiter="\t")
        for word in sorted(vectors.key_to_index):
            for other, score in vectors.most_similar(word, topn=3):
                writer.writerow([word, other, f"{score:.4f}"])


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    log.setLevel(logging.INFO)
    settings = Settings()
    corpus = RecipeCorpus(settings)
    sentences = corpus.sentences()
    print("recipes:", len(sentences), "words:", sum(map(len, sentences)))
    vectors = train(sentences, settings)
    save_vectors(vectors, "vectors.txt")
    save_neighbours(vectors, "neighbours.tsv")
    table = cuisine_table(centroids(vectors, corpus))
    with open("cuisines.json", "w") as fh:
        json.dump(table, fh, indent=2)
    print("purity: %.4f" % purity(vectors, corpus))
    for cuisine in CUISINES:
        print(cuisine, " ".join(f"{table[cuisine][b]:.4f}" for b in CUISINES))


if __name__ == "__main__":
    main()
