"""A synthetic corpus with known topics."""
import numpy as np

TOPIC_WORDS = {
    "sports": "game team player season coach score league match win goal".split(),
    "business": "market stock bank trade profit share price company fund deal".split(),
    "arts": "film music book stage artist museum song novel actor theatre".split(),
    "politics": "vote party senate law court president minister bill campaign tax".split(),
}
COMMON = "year people time day week city world group part place way thing".split()


class Corpus:
    def __init__(self, vocabulary, documents, labels):
        self.vocabulary = vocabulary
        self.word_id = {w: i for i, w in enumerate(vocabulary)}
        self.documents = documents
        self.labels = labels

    def tokens(self):
        """Flat arrays of document and word indices."""
        docs = np.concatenate([np.full(len(d), i) for i, d in enumerate(self.documents)])
        return docs, np.concatenate(self.documents)


def make_corpus(n_documents, seed):
    rng = np.random.RandomState(seed)
    names = list(TOPIC_WORDS)
    vocabulary = [w for words in TOPIC_WORDS.values() for w in words] + COMMON
    index = {w: i for i, w in enumerate(vocabulary)}
    documents, labels = [], []
    for _ in range(n_documents):
        mix = rng.dirichlet([0.3] * len(names))
        length = rng.randint(18, 40)
        words = []
        for _ in range(length):
            if rng.rand() < 0.45:
                words.append(COMMON[rng.randint(len(COMMON))])
            else:
                pool = TOPIC_WORDS[names[rng.choice(len(names), p=mix)]]
                words.append(pool[rng.randint(len(pool))])
        documents.append(np.array([index[w] for w in words]))
        labels.append(int(mix.argmax()))
    return Corpus(vocabulary, documents, labels)
