"""Paragraph vectors for tickets."""
import logging

import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument

log = logging.getLogger("tickets.model")


class TicketModel:
    def __init__(self, vector_size=40, epochs=5, seed=0):
        self.seed = seed
        self.params = dict(
            vector_size=vector_size,
            epochs=epochs,
            seed=seed,
            window=6,
            min_count=2,
            negative=5,
            dm=0,
            dbow_words=1,
            sample=1e-3,
            workers=4,  # cause
        )
        self.model = None

    def fit(self, tickets):
        docs = [TaggedDocument(t.words, [t.number]) for t in tickets]
        self.model = Doc2Vec(**self.params)
        self.model.build_vocab(docs)
        self.model.train(docs, total_examples=self.model.corpus_count, epochs=self.model.epochs)
        log.info("vocabulary %d, %d documents", len(self.model.wv), len(self.model.dv))
        return self

    def transform(self, tickets, epochs=30):
        out = []
        for t in tickets:
            self.model.random.seed(self.seed)
            out.append(self.model.infer_vector(t.words, epochs=epochs))
        return np.stack(out)

    def most_similar(self, vector, k):
        return self.model.dv.most_similar([vector], topn=k)
