"""Variant calling of simulated reads as a small workflow of rules with benchmark files.

Modelled on: snakemake/snakemake (job statistics, "[Sun Nov 29 ..]", "n of m steps (k%) done",
.snakemake/log/<date>.snakemake.log, benchmarks/*.tsv with s, h:m:s, max_rss, cpu_time) and VCF headers.
"""
import gzip
import hashlib
import json
import os
import platform
import random
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path

SEED = 77
SAMPLES = ["NA001", "NA002", "NA003"]
REF_LEN, READ_LEN, DEPTH, K = 3000, 80, 14, 21


class Workflow:
    def __init__(self, total):
        self.total, self.done, self.jobid = total, 0, 0
        Path(".snakemake/log").mkdir(parents=True)
        Path("benchmarks").mkdir()
        self.path = Path(".snakemake/log") / f"{datetime.now():%Y-%m-%dT%H%M%S.%f}.snakemake.log"
        self.fh = open(self.path, "w")
        self.tmp = Path(tempfile.mkdtemp(prefix="snakemake-"))

    def log(self, text=""):
        print(text, file=sys.stderr)
        self.fh.write(text + "\n")

    def rule(self, name, func, wildcards, inputs, outputs):
        self.jobid += 1
        tag = "_".join([name] + list(wildcards.values()))
        self.log(f"[{datetime.now():%a %b %d %H:%M:%S %Y}]\nlocalrule {name}:")
        self.log(f"    input: {', '.join(inputs)}\n    output: {', '.join(outputs)}\n    jobid: {self.jobid}\n    benchmark: benchmarks/{tag}.tsv")
        if wildcards:
            self.log("    wildcards: " + ", ".join(f"{k}={v}" for k, v in wildcards.items()))
        self.log(f"    resources: tmpdir={self.tmp}\n")
        for o in outputs:
            Path(o).parent.mkdir(parents=True, exist_ok=True)
        t, c = time.perf_counter(), time.process_time()
        res = func(*inputs, *outputs, **wildcards)
        s, cpu = time.perf_counter() - t, time.process_time() - c
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        with open(f"benchmarks/{tag}.tsv", "w") as f:
            f.write("s\th:m:s\tmax_rss\tmax_vms\tio_in\tio_out\tmean_load\tcpu_time\n")
            f.write(f"{s:.4f}\t{timedelta(seconds=int(s))}\t{rss:.2f}\t-\t0.00\t0.00\t{100 * cpu / max(s, 1e-9):.2f}\t{cpu:.2f}\n")
        self.done += 1
        self.log(f"[{datetime.now():%a %b %d %H:%M:%S %Y}]\nFinished jobid: {self.jobid} (Rule: {name})\n{self.done} of {self.total} steps ({100 * self.done // self.total}%) done")
        return res

    def close(self):
        self.log(f"Complete log(s): {self.path.resolve()}")
        self.fh.close()
        shutil.rmtree(self.tmp)


def reference(fasta):
    rng = random.Random(SEED)
    seq = "".join(rng.choice("ACGT") for _ in range(REF_LEN))
    with open(fasta, "w") as f:
        f.write(">chr1 simulated\n")
        for i in range(0, REF_LEN, 60):
            f.write(seq[i:i + 60] + "\n")


def read_fasta(path):
    return "".join(l.strip() for l in open(path) if not l.startswith(">"))


def reads(fasta, fastq, sample):
    ref = read_fasta(fasta)
    rng = random.Random(f"{SEED}-{sample}")
    pop = random.Random(SEED + 1)
    sites = sorted(pop.sample(range(100, REF_LEN - 100), 40))
    alts = {p: pop.choice([b for b in "ACGT" if b != ref[p]]) for p in sites}
    haps = []
    for _ in range(2):
        h = list(ref)
        for p in sites:
            if rng.random() < 0.35:
                h[p] = alts[p]
        haps.append("".join(h))
    with gzip.open(fastq, "wt") as f:
        for i in range(REF_LEN * DEPTH // READ_LEN):
            start = rng.randrange(REF_LEN - READ_LEN)
            r = [b if rng.random() > 0.004 else rng.choice("ACGT") for b in rng.choice(haps)[start:start + READ_LEN]]
            f.write(f"@{sample}:{i:06d}\n{''.join(r)}\n+\n{'I' * READ_LEN}\n")


def align(fasta, fastq, sam, sample):
    ref = read_fasta(fasta)
    index = defaultdict(list)
    for i in range(REF_LEN - K + 1):
        index[ref[i:i + K]].append(i)
    n = mapped = 0
    with gzip.open(fastq, "rt") as f, open(sam, "w") as out:
        out.write(f"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chr1\tLN:{REF_LEN}\n@RG\tID:{sample}\tSM:{sample}\tDT:{datetime.now():%Y-%m-%dT%H:%M:%S}\n")
        out.write(f"@PG\tID:kalign\tVN:0.2\tCL:kalign -k {K} {fasta} {fastq}\n")
        for name in f:
            seq = next(f).strip()
            next(f), next(f)
            n += 1
            votes = Counter(p - j for j in range(0, READ_LEN - K + 1, 7) for p in index.get(seq[j:j + K], ()))
            if not votes:
                continue
            pos, hits = max(votes.items(), key=lambda t: (t[1], -t[0]))
            nm = sum(a != b for a, b in zip(seq, ref[pos:pos + READ_LEN]))
            if 0 <= pos <= REF_LEN - READ_LEN and nm <= 8:
                mapped += 1
                out.write(f"{name[1:].strip()}\t0\tchr1\t{pos + 1}\t{min(60, 10 * hits)}\t{READ_LEN}M\t*\t0\t0\t{seq}\t*\tNM:i:{nm}\n")
    return n, mapped


def call(fasta, sam, vcf, sample):
    ref = read_fasta(fasta)
    piles = defaultdict(Counter)
    for line in open(sam):
        if line[0] != "@":
            c = line.split("\t")
            for k, b in enumerate(c[9]):
                piles[int(c[3]) - 1 + k][b] += 1
    n = 0
    with open(vcf, "w") as f:
        f.write(f"##fileformat=VCFv4.2\n##fileDate={datetime.now():%Y%m%d}\n##source=kcall-0.2\n##reference=file://{Path(fasta).resolve()}\n"
                f"##kcallCommand=call -s {sample} {sam}; Date={time.ctime()}\n##contig=<ID=chr1,length={REF_LEN}>\n"
                f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{sample}\n")
        for p in sorted(piles):
            depth = sum(piles[p].values())
            alts = [(c, b) for b, c in piles[p].items() if b != ref[p]]
            if not alts or depth < 5:
                continue
            c, b = max(alts)
            af = c / depth
            if c >= 3 and af >= 0.2:
                n += 1
                f.write(f"chr1\t{p + 1}\t.\t{ref[p]}\t{b}\t{10 * c}\tPASS\tDP={depth};AF={af:.4f}\tGT\t{'1/1' if af > 0.8 else '0/1'}\n")
    return n


def merge(*args):
    *vcfs, out = args
    table = defaultdict(dict)
    for v in vcfs:
        for line in open(v):
            if line[0] != "#":
                c = line.rstrip().split("\t")
                table[(int(c[1]), c[3], c[4])][Path(v).stem] = c[9]
    with gzip.open(out, "wt") as f:
        f.write("pos\tref\talt\t" + "\t".join(SAMPLES) + "\n")
        for (p, r, a), g in sorted(table.items()):
            f.write(f"{p}\t{r}\t{a}\t" + "\t".join(g.get(s, "0/0") for s in SAMPLES) + "\n")
    return len(table)


def main():
    t0 = time.time()
    wf = Workflow(2 + 3 * len(SAMPLES))
    wf.log(f"host: {socket.gethostname()}\nBuilding DAG of jobs...\nUsing shell: /usr/bin/bash\nProvided cores: 1 (use --cores to define parallelism)")
    wf.log("Job stats:\njob         count\n--------  -------\nreference       1\nreads           3\nalign           3\ncall            3\nmerge           1\ntotal          11\n")
    wf.rule("reference", reference, {}, [], ["ref/chr1.fa"])
    stats = {}
    for s in SAMPLES:
        w = {"sample": s}
        wf.rule("reads", reads, w, ["ref/chr1.fa"], [f"reads/{s}.fastq.gz"])
        n, m = wf.rule("align", align, w, ["ref/chr1.fa", f"reads/{s}.fastq.gz"], [f"mapped/{s}.sam"])
        v = wf.rule("call", call, w, ["ref/chr1.fa", f"mapped/{s}.sam"], [f"calls/{s}.vcf"])
        stats[s] = {"reads": n, "mapped": m, "variants": v}
    total = wf.rule("merge", merge, {}, [f"calls/{s}.vcf" for s in SAMPLES], ["calls/all.tsv.gz"])
    wf.close()
    for s, d in stats.items():
        print(f"{s}: {d['mapped']} of {d['reads']} reads mapped ({100 * d['mapped'] / d['reads']:.2f}%), {d['variants']} variants")
    print(f"{total} sites in calls/all.tsv.gz")
    body = gzip.open("calls/all.tsv.gz", "rb").read()
    Path("summary.json").write_text(json.dumps({
        "samples": stats, "sites": total, "sha256_of_table": hashlib.sha256(body).hexdigest(), "finished": datetime.now().isoformat(),
        "runtime_s": time.time() - t0, "executor": {"pid": os.getpid(), "python": platform.python_version()}}, indent=2))
    print(f"workflow finished in {time.time() - t0:.2f} s")


if __name__ == "__main__":
    main()
