"""A receipt of a run: what it was made of, in a small file, and what of it is no longer so."""
