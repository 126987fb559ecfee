"""Sentences from templates, and a word-level vocabulary."""
import json
import pathlib
import random

PEOPLE = "Anna Boris Clara Dmitri Elena Farid Greta Hiro".split()
PLACES = "Oslo Lagos Quito Hanoi Perth Turin Izmir Cork".split()
FIRMS = "Acme Globex Initech Umbrella Hooli Stark".split()
TEMPLATES = [
    "{p} moved to {l} last year",
    "{f} opens an office in {l}",
    "{p} works for {f} in {l}",
    "{f} hires {p} as director",
    "{p} and {q} met in {l}",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def sentences(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        template = rng.choice(TEMPLATES)
        p, q = rng.sample(PEOPLE, 2)
        out.append(template.format(p=p, q=q, l=rng.choice(PLACES), f=rng.choice(FIRMS)))
    return out


class Vocabulary:
    def __init__(self, words):
        self.words = list(words)
        self.index = {w: i for i, w in enumerate(self.words)}

    @classmethod
    def build(cls, lines):
        return cls(SPECIAL + sorted({w for line in lines for w in line.split()}))

    @classmethod
    def load(cls, path):
        return cls(json.loads(pathlib.Path(path).read_text()))

    def save(self, path):
        pathlib.Path(path).write_text(json.dumps(self.words))

    def encode(self, line, length=12):
        ids = [self.index["[CLS]"]]
        ids += [self.index.get(w, self.index["[UNK]"]) for w in line.split()][: length - 2]
        ids.append(self.index["[SEP]"])
        mask = [1] * len(ids) + [0] * (length - len(ids))
        return ids + [0] * (length - len(ids)), mask
