"""Seeded topic models."""
from .corpus import Corpus, make_corpus
from .guided import GuidedTopics

__all__ = ["Corpus", "make_corpus", "GuidedTopics"]
