"""Canonical k-mer sketch of every record in a FASTA file."""
import hashlib
import sys

comp = str.maketrans("ACGT", "TGCA")


def records(path):
    name, seq = None, []
    with open(path) as fh:
        for line in fh:
            line = line.strip()
            if line.startswith(">"):
                if name:
                    yield name, "".join(seq)
                name, seq = line[1:], []
            else:
                seq.append(line)
    if name:
        yield name, "".join(seq)


path, k, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for name, seq in records(path):
    hashes = []
    for i in range(0, len(seq) - k, 2):
        mer = seq[i : i + k]
        rev = mer.translate(comp)[::-1]
        digest = hashlib.blake2b(min(mer, rev).encode(), digest_size=6).digest()
        hashes.append(int.from_bytes(digest, "big"))
    sketch = sorted(hashes)[:size]
    print(name, *sketch, sep="\t")
