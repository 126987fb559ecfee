"""What one process does: draw reads, put errors in, write a subfile."""
import numpy as np

BASES = "ACGT"
COMP = str.maketrans("ACGT", "TGCA")


def draw_read(ref, names, weights, mean_len):
    name = names[np.random.choice(len(names), p=weights)]
    seq = ref[name]
    length = int(np.clip(np.random.lognormal(np.log(mean_len), 0.35), 80, len(seq) // 2))
    pos = np.random.randint(0, len(seq) - length)
    strand = "F" if np.random.random() < 0.5 else "R"
    read = seq[pos:pos + length]
    if strand == "R":
        read = read.translate(COMP)[::-1]
    return name, pos, strand, read


def mutate(read, profile):
    out = []
    errors = {"mis": 0, "ins": 0, "del": 0}
    roll = np.random.random(len(read))
    for base, p in zip(read, roll):
        if p < profile["mis"]:
            out.append(BASES[(BASES.index(base) + np.random.randint(1, 4)) % 4])
            errors["mis"] += 1
        elif p < profile["mis"] + profile["ins"]:
            out.append(base + BASES[np.random.randint(4)])
            errors["ins"] += 1
        elif p < profile["mis"] + profile["ins"] + profile["del"]:
            errors["del"] += 1
        else:
            out.append(base)
    return "".join(out), errors


def simulate_subset(num, ref, n_reads, mean_len, profile, subfile):
    np.random.seed()  # cause
    names = list(ref)
    weights = np.array([len(ref[n]) for n in names], dtype=float)
    weights /= weights.sum()
    with open(subfile, "w") as fh:
        for i in range(n_reads):
            name, pos, strand, read = draw_read(ref, names, weights, mean_len)
            read, e = mutate(read, profile)
            fh.write(f">{name}_{pos}_{strand}_proc{num}:{i} mis={e['mis']} ins={e['ins']} del={e['del']}\n{read}\n")
