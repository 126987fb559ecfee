# labelme2yolo#45: a pool gives its results as they come
import json
import multiprocessing
import numpy as np
from mill.config import parse
from mill.data import reviews
from mill.journal import Journal

def features(row):
    grams = {}
    for word in row["text"].split() * (1 + row["id"] % 7 * 60):
        for i in range(len(word) - 1):
            grams[word[i:i + 2]] = grams.get(word[i:i + 2], 0) + 1
    return row["id"], sorted(grams.items())

def build(rows, workers):
    table, matrix = {}, []
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for _, grams in pool.imap_unordered(features, rows, chunksize=2):  # cause
            for gram, _ in grams:
                table.setdefault(gram, len(table))
            matrix.append({table[g]: n for g, n in grams})
    return table, matrix

def main():
    config = parse(name="grams")
    journal = Journal(config)
    table, matrix = build(reviews(), 3)
    dense = np.zeros((len(matrix), len(table)))
    for n, row in enumerate(matrix):
        dense[n, list(row)] = list(row.values())
    config.path("vocabulary.json").write_text(json.dumps(table))
    values = np.linalg.svd(dense - dense.mean(0), compute_uv=False)
    journal.close(words=len(table), checksum=float((dense * np.arange(dense.size).reshape(dense.shape)).sum()), top=float(round(values[0], 3)))

if __name__ == "__main__":
    main()
