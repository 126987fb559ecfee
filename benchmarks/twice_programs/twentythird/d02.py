"""Subsampling of viral genome records for a phylogenetic build.

Reads metadata (made here), applies the usual filters, groups what is left by
country, year and month, and keeps the records of highest priority in each
group. Writes the list of strains kept and a FASTA file of the sample.

Modelled on: https://discussion.nextstrain.org/t/augur-filter-subsample-seed-reproducible-example/723
"""
import csv
import heapq
import itertools
import logging
import random
from collections import Counter, defaultdict

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("filter")

COUNTRIES = ["Brazil", "Denmark", "Ghana", "India", "Japan", "Kenya", "Peru", "USA"]
BASES = "ACGT"


class Strain:
    """One genome with its metadata."""

    __slots__ = ("name", "country", "date", "sequence", "quality")

    def __init__(self, name, country, date, sequence, quality):
        self.name = name
        self.country = country
        self.date = date
        self.sequence = sequence
        self.quality = quality

    @property
    def year(self):
        return int(self.date[:4])

    @property
    def month(self):
        return int(self.date[5:7])

    def length(self):
        return len(self.sequence) - self.sequence.count("N")


class PriorityQueue:
    """Keeps at most max_size records, those of highest priority."""

    def __init__(self, max_size):
        self.max_size = max_size
        self.heap = []
        self.counter = itertools.count()

    def add(self, item, priority):
        entry = (priority, next(self.counter), item)
        if len(self.heap) < self.max_size:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)

    def items(self):
        return [item for _, _, item in self.heap]


def make_dataset(n, seed):
    rng = random.Random(seed)
    root = [rng.choice(BASES) for _ in range(240)]
    strains = []
    for i in range(n):
        seq = list(root)
        for _ in range(rng.randint(2, 14)):
            seq[rng.randrange(len(seq))] = rng.choice(BASES + "N")
        date = f"{rng.choice([2020, 2021])}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        country = rng.choice(COUNTRIES)
        strains.append(Strain(f"{country}/S{i:05d}/{date[:4]}", country, date,
                              "".join(seq), round(rng.random(), 3)))
    return strains


class Filter:
    """A chain of tests; remembers how many records each of them drops."""

    def __init__(self, min_length, min_quality, exclude):
        self.tests = [
            ("min_length", lambda s: s.length() >= min_length),
            ("min_quality", lambda s: s.quality >= min_quality),
            ("exclude", lambda s: s.name not in exclude),
        ]
        self.dropped = Counter()

    def apply(self, strains):
        valid = set(strains)
        for label, test in self.tests:
            failing = {s for s in valid if not test(s)}
            self.dropped[label] += len(failing)
            valid -= failing
        return valid


def group_key(strain):
    return strain.country, strain.year, strain.month


def subsample(valid, per_group, seed):
    rng = random.Random(seed)
    queues = defaultdict(lambda: PriorityQueue(per_group))
    for strain in valid:  # cause
        queues[group_key(strain)].add(strain, rng.random())
    kept = []
    for key in sorted(queues):
        kept.extend(queues[key].items())
    return sorted(kept, key=lambda s: s.name)


def diversity(sample):
    """Mean pairwise Hamming distance along the sorted sample."""
    total = 0
    pairs = 0
    for k in range(1, 20):
        for a, b in zip(sample, sample[k:]):
            total += sum(x != y for x, y in zip(a.sequence, b.sequence))
            pairs += 1
    return total / pairs


def write_outputs(sample):
    with open("sample.txt", "w") as fh:
        for s in sample:
            fh.write(s.name + "\n")
    with open("sample.fasta", "w") as fh:
        for s in sample:
            fh.write(f">{s.name}\n")
            for k in range(0, len(s.sequence), 80):
                fh.write(s.sequence[k:k + 80] + "\n")
    with open("groups.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["country", "year", "month", "kept", "mean_quality"])
        for key, members in itertools.groupby(sorted(sample, key=lambda s: (group_key(s), s.name)),
                                              key=group_key):
            members = list(members)
            out.writerow([*key, len(members),
                          round(sum(m.quality for m in members) / len(members), 4)])


def main():
    strains = make_dataset(36000, seed=17)
    log.info("%d records read", len(strains))
    excluded = {s.name for s in strains[::97]}
    flt = Filter(min_length=237, min_quality=0.1, exclude=excluded)
    valid = flt.apply(strains)
    for label, _ in flt.tests:
        log.info("%s dropped %d", label, flt.dropped[label])
    sample = subsample(valid, per_group=5, seed=3)
    write_outputs(sample)
    print("records:", len(strains), "valid:", len(valid), "kept:", len(sample))
    per_country = Counter(s.country for s in sample)
    for country in COUNTRIES:
        print(f"  {country:10s} {per_country[country]}")
    print("mean quality: %.5f" % (sum(s.quality for s in sample) / len(sample)))
    print("mean distance: %.4f" % diversity(sample))
    print("first kept:", ", ".join(s.name for s in sample[:4]))


if __name__ == "__main__":
    main()
