"""Stable folds: a record belongs to the fold that its digest says, whatever else is in the store."""


def assign_folds(digests, folds):
    table = {k: [] for k in range(folds)}
    for name, digest in digests.items():
        table[int(digest[:12], 16) % folds].append(name)
    return table
