"""Variant-counting pipeline with worker processes.

Modelled on: nextflow-io/nextflow (trace.txt, timeline report, .nextflow.log, work/ab/cdef.../.command.*)
and nf-core/rnaseq (results/ with per-sample tables, pipeline_info/): simulate reads, trim, align,
count, merge. Every task runs in its own work folder with a random hash.
"""
import csv
import datetime as dt
import gzip
import hashlib
import html
import logging
import os
import random
import resource
import secrets
import shutil
import socket
import sys
import time
import uuid
from multiprocessing import Pool
from pathlib import Path

ADJ = ["admiring", "boring", "clever", "deadly", "evil", "furious", "golden", "hungry"]
SCI = ["bose", "curie", "darwin", "euler", "fermi", "gauss", "hopper", "jones"]
FIELDS = ["task_id", "hash", "native_id", "name", "status", "exit", "submit", "duration", "realtime", "%cpu",
          "peak_rss", "rchar"]
SAMPLES = {"liver_1": 11, "liver_2": 12, "gut_1": 21, "gut_2": 22}
log = logging.getLogger("nextflow")


def reference(seed=99, n=4000):
    rng = random.Random(seed)
    return "".join(rng.choice("ACGT") for _ in range(n))


def simulate(workdir, sample, seed):
    ref, rng = reference(), random.Random(seed)
    out = Path(workdir) / f"{sample}.fastq.gz"
    with open(out, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as f:
        for i in range(900):
            pos = rng.randrange(len(ref) - 60)
            read = "".join(rng.choice("ACGT") if rng.random() < 0.02 else c for c in ref[pos:pos + 60])
            qual = "".join(chr(33 + max(2, min(40, int(rng.gauss(34 - j / 6, 4))))) for j in range(60))
            f.write(f"@{sample}:{i}\n{read}\n+\n{qual}\n".encode())
    return str(out)


def trim(workdir, sample, fastq):
    kept = bases = 0
    out = Path(workdir) / f"{sample}.trimmed.fq"
    with gzip.open(fastq, "rt") as f, open(out, "w") as g:
        for name, seq, _, qual in zip(*[iter(f.read().splitlines())] * 4):
            n = len(qual)
            while n and ord(qual[n - 1]) - 33 < 22:
                n -= 1
            if n >= 40:
                kept, bases = kept + 1, bases + n
                g.write(f"{name}\n{seq[:n]}\n+\n{qual[:n]}\n")
    return str(out), kept, bases


def align(workdir, sample, fq):
    ref, k = reference(), 16
    index = {}
    for i in range(len(ref) - k + 1):
        index.setdefault(ref[i:i + k], i)
    out = Path(workdir) / f"{sample}.tsv"
    lines = Path(fq).read_text().splitlines()
    with open(out, "w") as g:
        for name, seq in zip(lines[::4], lines[1::4]):
            for off in range(0, len(seq) - k + 1, 4):
                hit = index.get(seq[off:off + k])
                if hit is not None and hit - off >= 0:
                    mism = sum(a != b for a, b in zip(seq, ref[hit - off:hit - off + len(seq)]))
                    g.write(f"{name[1:]}\t{hit - off}\t{len(seq)}\t{mism}\n")
                    break
    return str(out)


def count(workdir, sample, table, bins=20):
    hist, mism, total = [0] * bins, 0, 0
    for line in Path(table).read_text().splitlines():
        _, pos, n, m = line.split("\t")
        hist[int(pos) * bins // 4000] += 1
        mism, total = mism + int(m), total + int(n)
    return hist, mism, total


STEPS = {"SIMULATE": simulate, "TRIM": trim, "ALIGN": align, "COUNT": count}


def task(spec):
    task_id, process, sample, submit, args = spec
    h = secrets.token_hex(16)
    workdir = Path("work") / h[:2] / h[2:]
    workdir.mkdir(parents=True)
    start, cpu = time.time(), time.process_time()
    value = STEPS[process](workdir, sample, *args)
    end = time.time()
    (workdir / ".command.log").write_text(f"{process} on {socket.gethostname()} pid {os.getpid()}\n")
    (workdir / ".exitcode").write_text("0")
    real = end - start
    usage = {"task_id": task_id, "hash": f"{h[:2]}/{h[2:8]}", "native_id": os.getpid(), "name": f"{process} ({sample})",
             "status": "COMPLETED", "exit": 0, "submit": dt.datetime.fromtimestamp(submit).isoformat(" ", "milliseconds"),
             "duration": f"{(end - submit) * 1000:.0f}ms", "realtime": f"{real * 1000:.0f}ms",
             "%cpu": f"{100 * (time.process_time() - cpu) / max(real, 1e-6):.1f}%",
             "peak_rss": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f} MB",
             "rchar": sum(p.stat().st_size for p in workdir.glob("[!.]*"))}
    return value, usage, (start, end)


def timeline(rows, spans, t0, name):
    bars = "".join(f"<tr><td>{html.escape(r['name'])}</td><td style='padding-left:{(s - t0) * 200:.1f}px'>"
                   f"<div style='background:#4a8;width:{(e - s) * 200:.1f}px'>{r['realtime']} / {r['peak_rss']}</div>"
                   "</td></tr>" for r, (s, e) in zip(rows, spans))
    return (f"<html><head><title>[{name}] timeline</title></head><body><h3>Processes execution timeline</h3>"
            f"<p>Launch time: {dt.datetime.fromtimestamp(t0):%d %b %Y %H:%M:%S}<br>Elapsed time: "
            f"{time.time() - t0:.1f}s</p><table>{bars}</table></body></html>")


def main():
    t0 = time.time()
    run_name, session = f"{secrets.choice(ADJ)}_{secrets.choice(SCI)}", uuid.uuid4()
    logging.basicConfig(filename=".nextflow.log", level=logging.DEBUG,
                        format="%(asctime)s.%(msecs)03d [%(threadName)s] %(levelname)s %(name)s - %(message)s",
                        datefmt="%b-%d %H:%M:%S")
    print(f"N E X T F L O W  ~  version 23.10.1\nLaunching `main.nf` [{run_name}] DSL2 - revision: 4f1b2a", file=sys.stderr)
    log.info("Session UUID: %s; Run name: %s; Host: %s", session, run_name, socket.gethostname())
    rows, spans, state, task_id = [], [], {}, 0
    with Pool(2) as pool:
        for process in STEPS:
            specs = []
            for sample, seed in SAMPLES.items():
                task_id += 1
                args = {"SIMULATE": (seed,), "TRIM": (state.get(sample),), "ALIGN": (state.get(sample),),
                        "COUNT": (state.get(sample),)}[process]
                specs.append((task_id, process, sample, time.time(), args))
            for spec, (value, usage, span) in zip(specs, pool.map(task, specs, chunksize=1)):
                log.debug("Task completed > TaskHandler[id: %s; name: %s; hash: %s; pid: %s]", spec[0], usage["name"],
                          usage["hash"], usage["native_id"])
                print(f"[{usage['hash']}] process > {usage['name']}", file=sys.stderr)
                rows.append(usage)
                spans.append(span)
                if process == "TRIM":
                    state[spec[2]], state[spec[2], "kept"] = value[0], value[1:]
                else:
                    state[spec[2]] = value
    results = Path("results")
    info = results / "pipeline_info"
    info.mkdir(parents=True)
    stamp = f"{dt.datetime.now():%Y-%m-%d_%H-%M-%S}"
    with open(info / f"execution_trace_{stamp}.txt", "w") as f:
        w = csv.DictWriter(f, FIELDS, delimiter="\t")
        w.writeheader()
        w.writerows(rows)
    (info / f"execution_timeline_{stamp}.html").write_text(timeline(rows, spans, t0, run_name))
    with open(results / "counts.tsv", "w") as f:
        f.write("bin\t" + "\t".join(SAMPLES) + "\n")
        for i in range(20):
            f.write(f"{i}\t" + "\t".join(str(state[s][0][i]) for s in SAMPLES) + "\n")
    for s in SAMPLES:
        kept, bases = state[s, "kept"]
        hist, mism, total = state[s]
        print(f"{s}: reads kept {kept}, bases {bases}, mapped {sum(hist)}, mismatch rate {mism / total:.6f}")
    print("counts sha256", hashlib.sha256((results / "counts.tsv").read_bytes()).hexdigest())
    log.info("Execution complete -- Goodbye")
    print(f"\nCompleted at: {dt.datetime.now():%d-%b-%Y %H:%M:%S}\nDuration    : {time.time() - t0:.1f}s\n"
          f"CPU hours   : {sum(e - s for s, e in spans) / 3600:.4f}\nSucceeded   : {len(rows)}", file=sys.stderr)
    shutil.rmtree("work")


if __name__ == "__main__":
    main()
