"""Toy germline variant caller, printed like GATK's HaplotypeCaller, writing a VCF.

Output follows GATK 4 (https://github.com/broadinstitute/gatk/issues/7741, https://github.com/broadinstitute/gatk/issues/7281,
https://github.com/OmarOakheart/nPhase/issues/22): ProgressMeter lines, "Elapsed time", Runtime.totalMemory,
##GATKCommandLine in the VCF header with a Date.
"""
import getpass
import gzip
import math
import os
import platform
import resource
import socket
import sys
import tempfile
import time

import numpy as np

TOOL = "HaplotypeCaller"
CONTIGS = {"chr20": 60000, "chr21": 40000, "chrM": 16569}
READ, DEPTH, ERR = 100, 18, 0.01
BASES = np.frombuffer(b"ACGT", dtype=np.uint8)
T0 = time.time()


def info(msg, who=TOOL, level="INFO "):
    now = time.time()
    sys.stderr.write(time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d} {level} {who} - {msg}\n")


def stamp():
    return time.strftime("%B %d, %Y at %I:%M:%S %p ") + time.strftime("%Z")


class ProgressMeter:
    def __init__(self, every=0.25):
        self.start = self.last = time.time()
        self.every, self.n = every, 0
        info("Starting traversal", "ProgressMeter")
        info("       Current Locus  Elapsed Minutes     Regions Processed   Regions/Minute", "ProgressMeter")

    def line(self, locus):
        m = (time.time() - self.start) / 60
        info(f"{locus:>20} {m:16.1f} {self.n:21d} {self.n / m:16.1f}", "ProgressMeter")

    def update(self, locus):
        self.n += 1
        if time.time() - self.last > self.every:
            self.last = time.time()
            self.line(locus)

    def stop(self, locus):
        self.line(locus)
        info(f"Traversal complete. Processed {self.n} total regions in {(time.time() - self.start) / 60:.1f} minutes.", "ProgressMeter")


def simulate(seed=20):
    rng = np.random.default_rng(seed)
    with open("ref.fasta", "w") as fa, gzip.GzipFile("reads.txt.gz", "wb") as fq:
        ref, reads = {}, {}
        for c, n in CONTIGS.items():
            ref[c] = BASES[rng.integers(0, 4, n)]
            fa.write(f">{c}\n{ref[c].tobytes().decode()}\n")
            hap = [ref[c].copy(), ref[c].copy()]
            for pos in np.sort(rng.choice(n, n // 400, replace=False)):
                alt = BASES[(np.searchsorted(BASES, ref[c][pos]) + rng.integers(1, 4)) % 4]
                hap[0][pos] = alt
                if c == "chrM" or rng.random() < 0.4:
                    hap[1][pos] = alt
            k = n * DEPTH // READ
            starts = np.sort(rng.integers(0, n - READ, k))
            which = rng.integers(0, 2, k)
            seqs = np.stack([hap[w][s:s + READ] for s, w in zip(starts, which)])
            bad = rng.random(seqs.shape) < ERR
            seqs[bad] = BASES[rng.integers(0, 4, int(bad.sum()))]
            quals = rng.integers(20, 41, seqs.shape)
            mapq = np.where(rng.random(k) < 0.03, 5, 60)
            reads[c] = (starts, seqs, quals, mapq)
            for i, s in enumerate(starts):
                fq.write(b"%s\t%d\t%d\t%s\n" % (c.encode(), s + 1, mapq[i], seqs[i].tobytes()))
    return ref, reads


def genotype(bases, quals, r):
    """Diploid log10 likelihoods for the commonest alternative base."""
    counts = {b: int((bases == b).sum()) for b in BASES}
    alt = max((b for b in BASES if b != r), key=lambda b: (counts[b], -int(b)))
    if counts[alt] < 3:
        return None
    e = 10.0 ** (-quals / 10.0)
    pr = np.where(bases == r, 1 - e, e / 3)
    pa = np.where(bases == alt, 1 - e, e / 3)
    L = [math.fsum(np.log10(pr)), math.fsum(np.log10((pr + pa) / 2)), math.fsum(np.log10(pa))]
    pl = [int(round(-10 * (x - max(L)))) for x in L]
    gt = int(np.argmin(pl))
    qual = -10 * (L[0] - max(L)) - 30
    return None if gt == 0 or qual < 30 else (alt, counts[r], counts[alt], gt, pl, qual)


def call(ref, reads, cmdline):
    meter = ProgressMeter()
    filtered, pair_time, vcf = 0, 0.0, []
    for c, n in CONTIGS.items():
        starts, seqs, quals, mapq = reads[c]
        keep = mapq >= 20
        filtered += int((~keep).sum())
        starts, seqs, quals = starts[keep], seqs[keep], quals[keep]
        for a in range(0, n, 150):
            b = min(a + 150, n)
            lo, hi = np.searchsorted(starts, a - READ + 1), np.searchsorted(starts, b)
            for pos in range(a, b):
                i = np.arange(lo, hi)
                off = pos - starts[lo:hi]
                ok = (off >= 0) & (off < READ)
                if ok.sum() < 4:
                    continue
                bases, q = seqs[i[ok], off[ok]], quals[i[ok], off[ok]]
                if (bases != ref[c][pos]).sum() < 3:
                    continue
                t = time.perf_counter()
                g = genotype(bases, q, ref[c][pos])
                pair_time += time.perf_counter() - t
                if g:
                    alt, rd, ad, gt, pl, qual = g
                    vcf.append(f"{c}\t{pos + 1}\t.\t{chr(ref[c][pos])}\t{chr(alt)}\t{qual:.2f}\tPASS\t"
                               f"AC={gt};AF={gt / 2:.3f};AN=2;DP={len(bases)};QD={qual / len(bases):.2f}\tGT:AD:DP:GQ:PL\t"
                               f"{'0/1' if gt == 1 else '1/1'}:{rd},{ad}:{rd + ad}:{min(99, sorted(pl)[1])}:{','.join(map(str, pl))}")
            meter.update(f"{c}:{b}")
    info(f"{filtered} read(s) filtered by: MappingQualityReadFilter ")
    info("0 read(s) filtered by: NotDuplicateReadFilter ")
    info(f"{filtered} total reads filtered out of {sum(len(r[0]) for r in reads.values())} reads processed")
    meter.stop(f"{c}:{b}")
    info(f"Time spent in setup for JNI call : {pair_time / 50}", "VectorLoglessPairHMM")
    info(f"Total compute time in PairHMM computeLogLikelihoods() : {pair_time}", "PairHMM")
    info(f"Total compute time in java Smith-Waterman : {pair_time / 3:.2f} sec", "SmithWatermanAligner")
    with open("sample1.vcf", "w") as f:
        f.write("##fileformat=VCFv4.2\n##FILTER=<ID=PASS,Description=\"All filters passed\">\n")
        f.write(f"##GATKCommandLine=<ID={TOOL},CommandLine=\"{cmdline}\",Version=\"4.3.0.0\",Date=\"{stamp()}\">\n")
        f.write('##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n')
        for c, n in CONTIGS.items():
            f.write(f"##contig=<ID={c},length={n}>\n")
        f.write(f"##source={TOOL}\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tsample1\n")
        f.write("\n".join(vcf) + "\n")
    return vcf


def main():
    tmp = tempfile.mkdtemp(prefix="gatk_tmp_")
    cmd = f"{TOOL} --output sample1.vcf --input reads.txt.gz --reference ref.fasta --tmp-dir {tmp} --stand-call-conf 30.0"
    info(f"The Genome Analysis Toolkit (GATK) v4.3.0.0")
    try:
        who = getpass.getuser()
    except Exception:
        who = "?"
    info(f"Executing as {who}@{socket.gethostname()} on {platform.system()} v{platform.release()} {platform.machine()}")
    info(f"Start Date/Time: {stamp()}")
    info("HTSJDK Version: 3.0.1")
    info("Initializing engine")
    ref, reads = simulate()
    info("Done initializing engine")
    vcf = call(ref, reads, cmd)
    info("Shutting down engine")
    os.rmdir(tmp)
    print(f"[{stamp()}] org.broadinstitute.hellbender.tools.walkers.haplotypecaller.{TOOL} done. "
          f"Elapsed time: {(time.time() - T0) / 60:.2f} minutes.")
    print(f"Runtime.totalMemory()={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}")
    het = sum("\t0/1:" in v for v in vcf)
    print(f"{len(vcf)} variants, {het} het, {len(vcf) - het} hom")


if __name__ == "__main__":
    main()
