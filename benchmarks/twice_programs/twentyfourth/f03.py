"""Film finder: similar films by their plots.

Writes a synthetic catalogue of film plots, trains Doc2Vec paragraph vectors on
it, answers "films like this one" for some titles, and measures how often the
neighbours share the genre.

Modelled on: https://coderapp.vercel.app/answer/73231020
"""
import json
import logging
import random
from dataclasses import dataclass, field

import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument

log = logging.getLogger("films")

GENRES = {
    "western": ["sheriff", "ranch", "horse", "outlaw", "saloon", "gold", "duel", "desert", "train", "cattle"],
    "space": ["ship", "planet", "captain", "orbit", "alien", "signal", "crew", "station", "star", "reactor"],
    "crime": ["detective", "murder", "witness", "harbour", "gun", "lawyer", "money", "alibi", "gang", "night"],
    "romance": ["letter", "wedding", "summer", "dance", "secret", "garden", "heart", "rain", "paris", "sister"],
    "sport": ["coach", "match", "season", "team", "injury", "final", "training", "rival", "goal", "stadium"],
}
VERBS = ["finds", "loses", "meets", "follows", "leaves", "steals", "saves", "hides", "betrays", "remembers"]
COMMON = ["the", "a", "old", "young", "lost", "last", "then", "while", "after", "before", "with", "and"]


@dataclass
class Film:
    title: str
    genre: str
    plot: list = field(default_factory=list)


class Catalogue:
    """Makes the films and their plots."""

    def __init__(self, size, seed):
        self.rng = random.Random(seed)
        self.films = [self._film(i) for i in range(size)]
        self.by_title = {f.title: f for f in self.films}

    def _film(self, number):
        rng = self.rng
        genre = rng.choice(list(GENRES))
        other = rng.choice(list(GENRES))
        words = []
        for _ in range(rng.randint(12, 25)):
            pool = GENRES[genre] if rng.random() < 0.7 else GENRES[other]
            words += [rng.choice(COMMON), rng.choice(pool), rng.choice(VERBS), rng.choice(COMMON), rng.choice(pool)]
        return Film(f"{genre[:3].upper()}-{number:04d}", genre, words)

    def corpus(self):
        return [TaggedDocument(f.plot, [f.title]) for f in self.films]


def train(corpus, size=40, epochs=12):
    model = Doc2Vec(vector_size=size, window=5, min_count=2, alpha=0.03, min_alpha=0.001,  # cause
                    batch_words=200, epochs=epochs, seed=17, workers=3)
    model.build_vocab(corpus)
    log.info("vocabulary: %d words, %d films", len(model.wv), len(model.dv))
    model.train(corpus, total_examples=model.corpus_count, epochs=model.epochs)  # cause
    return model


def neighbours(model, title, count=5):
    return [(t, round(float(s), 5)) for t, s in model.dv.most_similar(title, topn=count)]


def genre_hits(model, catalogue, titles):
    hits = total = 0
    for title in titles:
        for other, _ in neighbours(model, title):
            hits += catalogue.by_title[other].genre == catalogue.by_title[title].genre
            total += 1
    return hits / total


def genre_centres(model, catalogue):
    centres = {}
    for genre in GENRES:
        vectors = [model.dv[f.title] for f in catalogue.films if f.genre == genre]
        centres[genre] = np.mean(vectors, axis=0)
    return centres


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    log.setLevel(logging.INFO)
    catalogue = Catalogue(1500, seed=8)
    model = train(catalogue.corpus())
    asked = [f.title for f in catalogue.films[::150]]
    answers = {}
    for title in asked:
        answers[title] = neighbours(model, title)
        print(title, "->", ", ".join(f"{t} {s:.4f}" for t, s in answers[title]))
    print(f"same genre among neighbours: {genre_hits(model, catalogue, [f.title for f in catalogue.films[::5]]):.4f}")
    centres = genre_centres(model, catalogue)
    for genre, centre in centres.items():
        print(f"{genre:8s} |centre| = {np.linalg.norm(centre):.5f}")
    with open("similar.json", "w") as handle:
        json.dump(answers, handle, indent=1)
    np.savetxt("centres.txt", np.stack(list(centres.values())), fmt="%.6f")


if __name__ == "__main__":
    main()
