"""Make the genomes of a community: names, lengths, abundances and some sequence."""
import json
import sys

import numpy as np


def main():
    kind, seed, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    rng = np.random.RandomState(seed)
    genomes = []
    for i in range(5):
        length = int(rng.randint(20000, 45000))
        genomes.append({
            "name": f"taxon{i}",
            "length": length,
            "sequence": "".join(rng.choice(list("ACGT"), length)),
        })
    weights = np.ones(5) if kind == "even" else rng.lognormal(0, 0.8, 5)
    weights = weights / weights.sum()
    for genome, weight in zip(genomes, weights):
        genome["abundance"] = round(float(weight), 6)
        print(f"{genome['name']} {genome['length']} {genome['abundance']:.4f}")
    with open(target, "w") as fh:
        json.dump(genomes, fh)


if __name__ == "__main__":
    main()
