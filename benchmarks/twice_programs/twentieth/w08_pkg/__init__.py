"""Knowledge graph embeddings in numpy."""
