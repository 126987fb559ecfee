"""Ticket files and their features."""
import json
import os
import random
import zlib

LABELS = ["billing", "login", "delivery", "defect", "other"]

_TOPIC = {
    "billing": "invoice charge refund card payment amount twice tax receipt",
    "login": "password account reset code email locked session token verify",
    "delivery": "parcel courier address late tracking box arrived delay street",
    "defect": "broken screen battery noise crack stopped warranty replace part",
    "other": "question feedback website language catalogue idea newsletter shop hours",
}
_COMMON = ("please the my a was and i have not since order yesterday help again is it to you can we "
           "still today after with this been contact support no yes thanks").split()


def write_tickets(folder, n, seed):
    rng = random.Random(seed)
    os.makedirs(folder, exist_ok=True)
    paths = []
    for k in range(n):
        label = rng.choice(LABELS)
        topic = _TOPIC[label].split()
        confuse = _TOPIC[rng.choice(LABELS)].split()
        words = []
        for _ in range(rng.randint(20, 160)):
            r = rng.random()
            words.append(rng.choice(topic if r < 0.1 else confuse if r < 0.17 else _COMMON))
        path = os.path.join(folder, f"ticket_{k:05d}.json")
        with open(path, "w") as fh:
            json.dump({"id": k, "label": label, "text": " ".join(words)}, fh)
        paths.append(path)
    return paths


class Featurizer:
    """Reads a ticket and hashes its word and character n-grams into buckets."""

    def __init__(self, buckets):
        self.buckets = buckets

    def _hash(self, gram):
        return zlib.crc32(gram.encode()) % self.buckets

    def __call__(self, path):
        with open(path) as fh:
            ticket = json.load(fh)
        words = ticket["text"].lower().split()
        ids = [self._hash(w) for w in words]
        ids += [self._hash(a + " " + b) for a, b in zip(words, words[1:])]
        for w in words:
            padded = f"<{w}>"
            ids += [self._hash(padded[i:i + 4]) for i in range(max(1, len(padded) - 3))]
        return ids, LABELS.index(ticket["label"])
