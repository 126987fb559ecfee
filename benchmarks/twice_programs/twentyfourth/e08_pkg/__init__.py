"""A tiny inference engine with a paged key/value cache."""
