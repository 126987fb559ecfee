"""Trim paired-end reads and write them interleaved for the aligner.

Simulates a small library, cuts adapters and low-quality tails with a pool of
worker threads, writes one interleaved FASTQ and a JSON report.

Modelled on: https://github.com/OpenGene/fastp/issues/552
"""
import argparse
import hashlib
import json
import logging
from pathlib import Path

from l03_pkg.processor import PairEndProcessor
from l03_pkg.simulate import write_pairs

log = logging.getLogger("trim")


def md5(path):
    return hashlib.md5(Path(path).read_bytes()).hexdigest()


def subsample_check(path, n=500):
    """Mean length of the first n records, a quick look for the report."""
    lengths = []
    with open(path) as fh:
        for i, line in enumerate(fh):
            if i % 4 == 1:
                lengths.append(len(line.rstrip()))
            if len(lengths) == n:
                break
    return round(sum(lengths) / max(1, len(lengths)), 4)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pairs", type=int, default=12000)
    ap.add_argument("--threads", type=int, default=4)
    ap.add_argument("--min-length", type=int, default=30)
    ap.add_argument("--seed", type=int, default=5)
    ap.add_argument("--prefix", default="lib1")
    args = ap.parse_args()
    logging.basicConfig(format="[%(asctime)s] %(message)s", level=logging.INFO)

    raw1, raw2 = f"{args.prefix}_R1.fastq", f"{args.prefix}_R2.fastq"
    write_pairs(raw1, raw2, args.pairs, seed=args.seed)
    log.info("simulated %d pairs", args.pairs)

    out = f"{args.prefix}.trimmed.interleaved.fastq"
    with open(out, "w") as sink:
        proc = PairEndProcessor(sink, threads=args.threads, min_len=args.min_length)
        stats = proc.run(raw1, raw2)

    report = {
        "command": {"threads": args.threads, "min_length": args.min_length},
        "stats": stats,
        "head_mean_length": subsample_check(out),
        "md5": {"R1": md5(raw1), "R2": md5(raw2), "interleaved": md5(out)},
    }
    Path(f"{args.prefix}.report.json").write_text(json.dumps(report, indent=2))
    log.info("wrote %s", out)
    for key, value in stats.items():
        print(f"{key:>10}: {value}")
    print(f"md5 {report['md5']['interleaved']}  {out}")


if __name__ == "__main__":
    main()
