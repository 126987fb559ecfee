"""k-mer profiles and a distance matrix of four samples, run by a Snakemake-like scheduler.

Output format: Snakemake's stdout and .snakemake/log file (job stats, rule
blocks, "Finished job", "n of m steps"), benchmark TSV files, .gz outputs.
Seen at: https://github.com/ihmeuw/easylink/pull/73
         https://github.com/snakemake/snakemake/issues/3178
Field: bioinformatics workflows.
"""
import gzip
import json
import os
import platform
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from datetime import datetime

SAMPLES, K, READS, READ_LEN = ("A", "B", "C", "D"), 7, 1500, 90


def genome(sample):
    rng = random.Random(99)
    base = [rng.choice("ACGT") for _ in range(9000)]
    rng = random.Random(ord(sample))
    rate = {"A": 0.0, "B": 0.01, "C": 0.04, "D": 0.12}[sample]
    return "".join(rng.choice("ACGT") if rng.random() < rate else b for b in base)


def simulate_reads(sample, tmp):
    rng, seq = random.Random(1000 + ord(sample)), genome(sample)
    path = f"reads/{sample}.fq.gz"
    with gzip.open(path, "wt") as fh:
        for i in range(READS):
            p = rng.randrange(len(seq) - READ_LEN)
            read = "".join(c if rng.random() > 0.01 else rng.choice("ACGT") for c in seq[p:p + READ_LEN])
            fh.write(f"@{sample}.{i}\n{read}\n+\n{'I' * READ_LEN}\n")
    return f"{READS} reads"


def count_kmers(sample, tmp):
    counts = Counter()
    with gzip.open(f"reads/{sample}.fq.gz", "rt") as fh:
        for n, line in enumerate(fh):
            if n % 4 == 1:
                read = line.strip()
                counts.update(read[i:i + K] for i in range(READ_LEN - K + 1))
    part = os.path.join(tmp, f"{sample}.{os.getpid()}.part")
    with open(part, "w") as fh:
        fh.writelines(f"{k}\t{counts[k]}\n" for k in sorted(counts))
    shutil.move(part, f"kmers/{sample}.tsv")
    return f"{len(counts)} distinct {K}-mers"


def load(sample):
    with open(f"kmers/{sample}.tsv") as fh:
        return {k: int(v) for k, v in (line.split() for line in fh)}


def distances(_, tmp):
    tables = {s: load(s) for s in SAMPLES}
    with open("results/distance.tsv", "w") as fh:
        fh.write("\t" + "\t".join(SAMPLES) + "\n")
        for a in SAMPLES:
            cells = []
            for b in SAMPLES:
                keys = sorted(set(tables[a]) | set(tables[b]))
                num = sum(min(tables[a].get(k, 0), tables[b].get(k, 0)) for k in keys)
                den = min(sum(tables[a].values()), sum(tables[b].values()))
                cells.append(f"{1 - num / den:.6f}")
            fh.write(a + "\t" + "\t".join(cells) + "\n")
    return "matrix"


def spectrum(_, tmp):
    out = {}
    for s in SAMPLES:
        hist = Counter(min(v, 50) for v in load(s).values())
        out[s] = {"once": hist[1], "mode": max(sorted(h for h in hist if h > 1), key=lambda h: hist[h]), "kinds": sum(hist.values())}
    meta = {"created": datetime.now().isoformat(), "host": platform.node(), "pid": os.getpid(), "spectrum": out}
    with open("results/spectrum.json", "w") as fh:
        json.dump(meta, fh, indent=1)
    return "spectrum"


def execute(func, sample, bench, tmp):
    t, c = time.time(), time.process_time()
    note = func(sample, tmp)
    secs, use = time.time() - t, resource.getrusage(resource.RUSAGE_SELF)
    with open(bench, "w") as fh:
        fh.write("s\th:m:s\tmax_rss\tio_in\tio_out\tmean_load\tcpu_time\n")
        fh.write(f"{secs:.4f}\t{time.strftime('%H:%M:%S', time.gmtime(secs))}\t{use.ru_maxrss / 1024:.2f}\t{use.ru_inblock / 2048:.2f}\t"
                 f"{use.ru_oublock / 2048:.2f}\t{100 * (time.process_time() - c) / max(secs, 1e-9):.2f}\t{time.process_time() - c:.2f}\n")
    return note, os.getpid()


def main():
    for d in ("reads", "kmers", "results", "benchmarks", ".snakemake/log"):
        os.makedirs(d, exist_ok=True)
    tmp = tempfile.mkdtemp(prefix="snakejob_")
    log_path = f".snakemake/log/{datetime.now():%Y-%m-%dT%H%M%S.%f}.snakemake.log"
    log = open(log_path, "w")

    def say(text):
        print(text, flush=True)
        log.write(text + "\n")

    jobs, jid = {}, 0
    for rule, func, inp in (("simulate_reads", simulate_reads, None), ("count_kmers", count_kmers, "simulate_reads")):
        for s in SAMPLES:
            jid += 1
            jobs[jid] = dict(rule=rule, func=func, sample=s, needs=[j for j, o in jobs.items() if o["rule"] == inp and o["sample"] == s])
    counts = [j for j, o in jobs.items() if o["rule"] == "count_kmers"]
    jobs[jid + 1] = dict(rule="distances", func=distances, sample="all", needs=counts)
    jobs[jid + 2] = dict(rule="spectrum", func=spectrum, sample="all", needs=counts)
    say("Assuming unrestricted shared filesystem usage for local execution.")
    say(f"host: {platform.node()}\nBuilding DAG of jobs...\nUsing shell: /usr/bin/bash\nProvided cores: 2\nJob stats:")
    say(f"{'job':<16}  count\n{'-' * 16}  -------")
    for rule, n in sorted(Counter(o["rule"] for o in jobs.values()).items()):
        say(f"{rule:<16}  {n:5d}")
    say(f"{'total':<16}  {len(jobs):5d}\n")
    done, running, total = set(), {}, len(jobs)
    clock = lambda: f"[{time.ctime()}]"
    with ProcessPoolExecutor(2) as pool:
        while len(done) < total:
            ready = [j for j in jobs if j not in done and j not in running.values() and set(jobs[j]["needs"]) <= done]
            if ready:
                say(f"Select jobs to execute...\nExecute {len(ready)} jobs...\n" if not done and not running else "Select jobs to execute...")
            for j in ready:
                o = jobs[j]
                say(f"{clock()}\nlocalrule {o['rule']}:\n    jobid: {j}\n    reason: Missing output files\n    wildcards: sample={o['sample']}\n    resources: tmpdir={tmp}\n")
                bench = f"benchmarks/{o['rule']}.{o['sample']}.tsv"
                running[pool.submit(execute, o["func"], o["sample"], bench, tmp)] = j
            for fut in wait(running, return_when=FIRST_COMPLETED).done:
                j = running.pop(fut)
                note, pid = fut.result()
                done.add(j)
                say(f"{clock()}\nFinished job {j}. ({jobs[j]['rule']} {jobs[j]['sample']}: {note}; pid {pid})\n{len(done)} of {total} steps ({100 * len(done) // total}%) done")
    say(f"Complete log: {os.path.abspath(log_path)}")
    log.close()
    shutil.rmtree(tmp)
    print("\nk-mer distance matrix\n" + open("results/distance.tsv").read(), end="")
    for s, row in json.load(open("results/spectrum.json"))["spectrum"].items():
        print(f"{s}: {row['kinds']} kinds, {row['once']} seen once, mode {row['mode']}")
    slow = max(os.listdir("benchmarks"), key=lambda f: float(open(f"benchmarks/{f}").readlines()[1].split()[0]))
    print(f"slowest step: {slow}", file=sys.stderr)


if __name__ == "__main__":
    main()
