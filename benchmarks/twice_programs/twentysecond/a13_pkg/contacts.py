"""Count contacts between fixed-size fragments of the genomes."""
import json
import sys

import numpy as np

FRAGMENT = 1500


def fragments(genomes):
    index, names = {}, []
    for genome in genomes:
        for k in range(genome["length"] // FRAGMENT + 1):
            index[genome["name"], k] = len(names)
            names.append(genome["name"])
    return index, names


def main():
    community, reads, target = sys.argv[1:4]
    with open(community) as fh:
        genomes = json.load(fh)
    index, names = fragments(genomes)
    matrix = np.zeros((len(names), len(names)), int)
    with open(reads) as fh:
        for line in fh:
            _, a, x, _, b, y, _ = line.rstrip("\n").split("\t")
            i = index[a, int(x) // FRAGMENT]
            j = index[b, int(y) // FRAGMENT]
            matrix[i, j] += 1
            if i != j:
                matrix[j, i] += 1
    np.save(target, matrix)
    off = matrix - np.diag(np.diag(matrix))
    print(f"fragments {len(names)}, contacts {off.sum() // 2}, within {np.trace(matrix)}")


if __name__ == "__main__":
    main()
