"""Canonical names for mentions."""
import threading
from functools import lru_cache


@lru_cache(maxsize=None)
def trigrams(word):
    padded = f"##{word}#"
    return frozenset(padded[i:i + 3] for i in range(len(padded) - 2))


def similarity(a, b):
    ta, tb = trigrams(a), trigrams(b)
    return 2 * len(ta & tb) / (len(ta) + len(tb))


class EntityStore:
    """The entities seen so far, in the order they were first mentioned."""

    def __init__(self, threshold):
        self.threshold = threshold
        self.entities = []
        self.mentions = []
        self.lock = threading.Lock()

    def ground(self, mention):
        """Canonical name of the mention: the closest known entity, or itself."""
        with self.lock:
            best, score = None, self.threshold
            for k, name in enumerate(self.entities):
                s = similarity(mention, name)
                if s > score:
                    best, score = k, s
            if best is None:
                self.entities.append(mention)
                self.mentions.append(0)
                best = len(self.entities) - 1
            self.mentions[best] += 1
            return self.entities[best]

    def as_rows(self):
        return [{"name": n, "mentions": m}
                for n, m in zip(self.entities, self.mentions)]
