"""Align simulated reads to a toy genome with worker processes; logs in the manner of STAR.

Log.final.out format: https://github.com/alexdobin/STAR/pull/791
Log.progress.out format: https://github.com/alexdobin/STAR/issues/996
"""
import multiprocessing as mp
import os
import random
import time

GENOME_LEN, READS, READ_LEN, KMER, CHUNK, SEED = 60000, 48000, 60, 16, 1500, 11
COMP = str.maketrans("ACGT", "TGCA")
GENOME, INDEX = "", {}


def stamp(t=None):
    return time.strftime("%b %d %H:%M:%S", time.localtime(t))


def make_genome():
    rng = random.Random(SEED)
    g = [rng.choice("ACGT") for _ in range(GENOME_LEN)]
    for _ in range(12):                      # repeats, so that some reads map twice
        a, b = rng.randrange(GENOME_LEN - 400), rng.randrange(GENOME_LEN - 400)
        g[b:b + 300] = g[a:a + 300]
    introns = []
    for pos in range(3000, GENOME_LEN - 3000, 4000):
        ln = rng.randrange(80, 400)
        g[pos:pos + 2], g[pos + ln - 2:pos + ln] = list("GT"), list("AG")
        introns.append((pos, ln))
    return "".join(g), introns


def make_reads(genome, introns):
    rng = random.Random(SEED + 1)
    for i in range(READS):
        kind = rng.random()
        if kind < 0.06:
            seq = "".join(rng.choice("ACGT") for _ in range(READ_LEN))
        elif kind < 0.20:
            pos, ln = rng.choice(introns)
            left = rng.randrange(KMER + 4, READ_LEN - KMER - 4)
            seq = genome[pos - left:pos] + genome[pos + ln:pos + ln + READ_LEN - left]
        else:
            p = rng.randrange(GENOME_LEN - READ_LEN)
            seq = genome[p:p + READ_LEN]
        s = list(seq)
        for k in range(READ_LEN):
            if rng.random() < 0.006:
                s[k] = rng.choice("ACGT")
        seq = "".join(s)
        if rng.random() < 0.5:
            seq = seq[::-1].translate(COMP)
        yield f"read{i}", seq


def init_worker(genome):
    global GENOME, INDEX
    GENOME = genome
    for p in range(len(genome) - KMER + 1):
        INDEX.setdefault(genome[p:p + KMER], []).append(p)


def mismatches(seq, pos):
    return sum(a != b for a, b in zip(seq, GENOME[pos:pos + len(seq)]))


def align_one(seq):
    hits, splices = set(), set()
    for strand in (0, 1):
        s = seq if strand == 0 else seq[::-1].translate(COMP)
        heads = [p - o for o in (0, 8) for p in INDEX.get(s[o:o + KMER], [])]
        tails = [p - (READ_LEN - KMER - o) for o in (0, 8)
                 for p in INDEX.get(s[READ_LEN - KMER - o:READ_LEN - o], [])]
        for p in set(heads + tails):
            if 0 <= p <= len(GENOME) - READ_LEN:
                mm = mismatches(s, p)
                if mm <= 4:
                    hits.add((mm, p, strand))
        if not hits:
            for p in set(heads):
                for q in set(tails):
                    gap = q - p
                    if 60 <= gap <= 500 and p >= 0:
                        best = min((mismatches(s[:c], p) + mismatches(s[c:], q + c),
                                    GENOME[p + c:p + c + 2] != "GT", c) for c in range(KMER, READ_LEN - KMER))
                        if best[0] <= 4:
                            splices.add((best[0], p, gap, best[2], strand))
    return sorted(hits), sorted(splices)


def align_chunk(task):
    no, chunk = task
    t0 = time.perf_counter()
    res = {"n": 0, "unique": 0, "multi": 0, "short": 0, "mm": 0, "bases": 0, "sj": {}, "sam": []}
    for name, seq in chunk:
        res["n"] += 1
        hits, splices = align_one(seq)
        if hits:
            good = [h for h in hits if h[0] <= hits[0][0] + 1]
            if len(good) == 1:
                res["unique"] += 1
                res["mm"] += good[0][0]
                res["bases"] += READ_LEN
                res["sam"].append((name, 16 * good[0][2], good[0][1] + 1, f"{READ_LEN}M", good[0][0]))
            else:
                res["multi"] += 1
        elif splices:
            mm, p, gap, c, strand = splices[0]
            res["unique"] += 1
            res["mm"] += mm
            res["bases"] += READ_LEN
            key = (p + c + 1, p + c + gap, GENOME[p + c:p + c + 2] + GENOME[p + c + gap - 2:p + c + gap])
            res["sj"][key] = res["sj"].get(key, 0) + 1
            res["sam"].append((name, 16 * strand, p + 1, f"{c}M{gap}N{READ_LEN - c}M", mm))
        else:
            res["short"] += 1
    return no, os.getpid(), time.perf_counter() - t0, res


def main():
    t_job = time.time()
    print(f"{stamp()} ..... started STAR run", flush=True)
    print(f"{stamp()} ..... loading genome", flush=True)
    genome, introns = make_genome()
    reads = list(make_reads(genome, introns))
    tasks = [(i, reads[k:k + CHUNK]) for i, k in enumerate(range(0, READS, CHUNK))]
    tot = {k: 0 for k in ("n", "unique", "multi", "short", "mm", "bases")}
    sj, sam = {}, []
    t_map = time.time()
    print(f"{stamp()} ..... started mapping", flush=True)
    with mp.get_context("fork").Pool(2, init_worker, (genome,)) as pool, \
            open("Log.progress.out", "w") as prog, open("Log.out", "w") as log:
        log.write(f"STAR version=2.7.10a\nworkDir={os.getcwd()}\npid={os.getpid()}\n")
        prog.write("           Time    Speed        Read     Read   Mapped   Mapped   Mapped   Mapped Unmapped Unmapped\n"
                   "                    M/hr      number   length   unique   length   MMrate    multi    short    other\n")
        for no, pid, sec, r in pool.imap(align_chunk, tasks):
            for k in tot:
                tot[k] += r[k]
            for key, c in r["sj"].items():
                sj[key] = sj.get(key, 0) + c
            sam += r["sam"]
            log.write(f"Thread process {pid} finished chunk #{no}: {r['n']} reads in {sec:.3f} s\n")
            speed = tot["n"] / (time.time() - t_map) * 3600 / 1e6
            prog.write(f"{stamp():>15} {speed:8.1f} {tot['n']:11d} {READ_LEN:8d} {100 * tot['unique'] / tot['n']:7.1f}% "
                       f"{READ_LEN:8.1f} {100 * tot['mm'] / tot['bases']:7.1f}% {100 * tot['multi'] / tot['n']:7.1f}% "
                       f"{100 * tot['short'] / tot['n']:7.1f}%     0.0%\n")
        prog.write("ALL DONE!\n")
    t_end = time.time()
    print(f"{stamp()} ..... finished mapping", flush=True)
    kinds = {}
    for key, c in sj.items():
        kinds[key[2]] = kinds.get(key[2], 0) + c
    rows = [("Started job on", stamp(t_job)), ("Started mapping on", stamp(t_map)), ("Finished on", stamp(t_end)),
            ("Mapping speed, Million of reads per hour", f"{READS / (t_end - t_map) * 3600 / 1e6:.2f}"), None,
            ("Number of input reads", tot["n"]), ("Average input read length", READ_LEN), "UNIQUE READS:",
            ("Uniquely mapped reads number", tot["unique"]),
            ("Uniquely mapped reads %", f"{100 * tot['unique'] / tot['n']:.2f}%"),
            ("Number of splices: Total", sum(sj.values())), ("Number of splices: GT/AG", kinds.get("GTAG", 0)),
            ("Number of splices: Non-canonical", sum(v for k, v in kinds.items() if k != "GTAG")),
            ("Mismatch rate per base, %", f"{100 * tot['mm'] / tot['bases']:.2f}%"), "MULTI-MAPPING READS:",
            ("Number of reads mapped to multiple loci", tot["multi"]), "UNMAPPED READS:",
            ("Number of reads unmapped: too short", tot["short"])]
    with open("Log.final.out", "w") as f:
        for r in rows:
            if r is None:
                f.write("\n")
            elif isinstance(r, str):
                f.write(f"{r:>49}\n")
            else:
                f.write(f"{r[0]:>48} |\t{r[1]}\n")
    with open("SJ.out.tab", "w") as f:
        for (a, b, m), c in sorted(sj.items()):
            f.write(f"chr1\t{a}\t{b}\t1\t{int(m == 'GTAG')}\t0\t{c}\n")
    print(f"{stamp()} ..... finished successfully, {len(sam)} alignments, "
          f"checksum {sum(p * (i + 1) for i, (_, _, p, _, _) in enumerate(sam)) % 10 ** 9}")


if __name__ == "__main__":
    main()
