"""Word embeddings from co-occurrence counts."""
from .counts import Vocabulary, cooccurrence
from .glove import Glove

__all__ = ["Vocabulary", "cooccurrence", "Glove"]
