"""A Nextflow-like RNA-seq quantification pipeline on made-up reads.

Output follows Nextflow (https://docs.seqera.io/nextflow/reports and
https://gist.github.com/Rohit-Satyam/a1bb74075b4c80e779b804a8d88eb9e5): run name, session id, work/xx/yyyy folders,
trace file, timeline HTML, .nextflow.log. Tasks run as child processes, one after the other.
"""
import datetime as dt
import json
import os
import random
import resource
import secrets
import subprocess
import sys
import time
import uuid
from pathlib import Path

SAMPLES = ["gut_rep1", "gut_rep2", "liver_rep1", "liver_rep2"]
ADJ = "naughty thirsty goofy scruffy grave small jolly drunk mighty pensive".split()
SCI = "heisenberg swanson kilby archimedes poincare goldstine curie noether euler franklin".split()
SESSION = uuid.uuid4()
RUN_NAME = secrets.choice(ADJ) + "_" + secrets.choice(SCI)
START = dt.datetime.now()
TRACE = f"pipeline_info/execution_trace_{START:%Y-%m-%d_%H-%M-%S}.txt"
FIELDS = "task_id hash native_id name status exit submit duration realtime %cpu peak_rss peak_vmem rchar wchar".split()

SCRIPTS = {
    "INDEX": '''
import json,sys
k=15; idx={}
for line in open("transcripts.fa"):
    if line[0]==">": name=line[1:].strip()
    else:
        s=line.strip()
        for i in range(len(s)-k+1): idx.setdefault(s[i:i+k],[]).append(name)
json.dump(idx,open("index.json","w"),sort_keys=True)
print(len(idx),"kmers")
''',
    "FASTQC": '''
import sys
n=gc=tot=0; hist=[0]*42
for i,l in enumerate(open("reads.fq")):
    if i%4==1: n+=1; gc+=l.count("G")+l.count("C"); tot+=len(l)-1
    if i%4==3:
        for c in l.strip(): hist[ord(c)-33]+=1
open("fastqc.txt","w").write("reads\\t%d\\ngc\\t%.3f\\nhist\\t%s\\n"%(n,100*gc/tot,hist))
''',
    "QUANT": '''
import json,collections
idx=json.load(open("index.json")); k=15; c=collections.Counter(); un=0
for i,l in enumerate(open("reads.fq")):
    if i%4==1:
        v=collections.Counter()
        for j in range(0,len(l)-k,5):
            for t in idx.get(l[j:j+k],()): v[t]+=1
        if v: c[min(v,key=lambda t:(-v[t],t))]+=1
        else: un+=1
tot=sum(c.values())
with open("quant.sf","w") as f:
    f.write("Name\\tNumReads\\tTPM\\n")
    for t in sorted(c): f.write("%s\\t%d\\t%.4f\\n"%(t,c[t],1e6*c[t]/tot))
print("mapped",tot,"unmapped",un)
''',
}


def human_ms(s):
    return f"{int(s * 1000)}ms" if s < 1 else f"{s:.1f}s"


def human_mb(kb):
    return f"{kb / 1024:.1f} MB"


class Log:
    def __init__(self):
        self.f = open(".nextflow.log", "w")

    def __call__(self, msg, level="DEBUG", who="nextflow.Session", thread="main"):
        n = dt.datetime.now()
        self.f.write(f"{n:%b-%d %H:%M:%S}.{n.microsecond // 1000:03d} [{thread}] {level} {who} - {msg}\n")


def make_inputs():
    r = random.Random(99)
    tx = {f"ENST{i:05d}": "".join(r.choice("ACGT") for _ in range(r.randrange(300, 700))) for i in range(120)}
    Path("data").mkdir()
    Path("data/transcripts.fa").write_text("".join(f">{n}\n{s}\n" for n, s in tx.items()))
    for s in SAMPLES:
        w = [r.paretovariate(1.1) for _ in tx]
        with open(f"data/{s}.fq", "w") as f:
            for i, name in enumerate(r.choices(list(tx), w, k=4000)):
                seq = tx[name]
                a = r.randrange(len(seq) - 75)
                read = "".join(c if r.random() > 0.01 else r.choice("ACGT") for c in seq[a:a + 75])
                f.write(f"@{s}.{i}\n{read}\n+\n{''.join(chr(33 + r.randrange(25, 41)) for _ in range(75))}\n")


class Runner:
    def __init__(self, log):
        self.log, self.n, self.rows = log, 0, []

    def task(self, process, tag, inputs, outputs):
        self.n += 1
        h = secrets.token_hex(16)
        work = Path("work") / h[:2] / h[2:]
        work.mkdir(parents=True)
        for name, src in inputs.items():
            (work / name).symlink_to(Path(src).resolve())
        (work / ".command.sh").write_text(SCRIPTS[process])
        submit, t = dt.datetime.now(), time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        name = f"{process} ({tag})" if tag else process
        self.log(f"[{h[:2]}/{h[2:8]}] Submitted process > {name}", "INFO ", "nextflow.Session", "Task submitter")
        p = subprocess.Popen([sys.executable, "-S", ".command.sh"], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out = p.communicate()[0]
        (work / ".command.out").write_bytes(out)
        (work / ".exitcode").write_text(str(p.returncode))
        wall = time.perf_counter() - t
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = r.ru_utime + r.ru_stime - before.ru_utime - before.ru_stime
        (work / ".command.trace").write_text(f"nextflow.trace/v2\nrealtime={int(wall * 1000)}\n%cpu={int(1000 * cpu / wall)}\npeak_rss={r.ru_maxrss}\n")
        self.rows.append([self.n, f"{h[:2]}/{h[2:8]}", p.pid, name, "COMPLETED" if p.returncode == 0 else "FAILED", p.returncode,
                          submit.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3], human_ms(wall + 0.004), human_ms(wall),
                          f"{100 * cpu / wall:.1f}%", human_mb(r.ru_maxrss), human_mb(r.ru_maxrss * 3), "1.2 MB", "3.4 KB"])
        print(f"[{h[:2]}/{h[2:8]}] process > {name:<20} [{100 if p.returncode == 0 else 0:3d}%] 1 of 1 ✔", flush=True)
        self.log(f"Task completed > TaskHandler[id: {self.n}; name: {name}; status: COMPLETED; exit: {p.returncode}; workDir: {work.resolve()}]",
                 who="n.processor.TaskPollingMonitor", thread="Task monitor")
        if out:
            print("    " + out.decode().strip())
        return [work / o for o in outputs]


def publish(src, dest):
    dest = Path("results") / dest
    dest.parent.mkdir(parents=True, exist_ok=True)
    dest.write_bytes(Path(src).read_bytes())


def main():
    log = Log()
    Path("pipeline_info").mkdir()
    print("N E X T F L O W  ~  version 23.10.1")
    print(f"Launching `main.nf` [{RUN_NAME}] DSL2 - revision: 6c5ffa4d1b")
    log(f"Session uuid: {SESSION}")
    log(f"Run name: {RUN_NAME}")
    log(f"Work-dir: {Path('work').resolve()} [ext2/ext3]")
    make_inputs()
    run = Runner(log)
    (index,) = run.task("INDEX", "", {"transcripts.fa": "data/transcripts.fa"}, ["index.json"])
    quant = {}
    for s in SAMPLES:
        (qc,) = run.task("FASTQC", s, {"reads.fq": f"data/{s}.fq"}, ["fastqc.txt"])
        publish(qc, f"fastqc/{s}.txt")
        (q,) = run.task("QUANT", s, {"reads.fq": f"data/{s}.fq", "index.json": index}, ["quant.sf"])
        publish(q, f"quant/{s}.sf")
        quant[s] = {l.split("\t")[0]: float(l.split("\t")[2]) for l in q.read_text().splitlines()[1:]}
    names = sorted(set().union(*quant.values()))
    Path("results/tpm.tsv").write_text("\t".join(["name", *SAMPLES]) + "\n" + "".join(
        n + "\t" + "\t".join(f"{quant[s].get(n, 0):.4f}" for s in SAMPLES) + "\n" for n in names))
    with open(TRACE, "w") as f:
        f.write("\n".join("\t".join(map(str, r)) for r in [FIELDS, *run.rows]) + "\n")
    end = dt.datetime.now()
    with open(f"pipeline_info/execution_timeline_{START:%Y-%m-%d_%H-%M-%S}.html", "w") as f:
        f.write(f"<html><h3>Processes execution timeline</h3><p>Launch time: {START:%d %b %Y %H:%M}<br>Elapsed time: "
                f"{human_ms((end - START).total_seconds())}</p><script>var data = {json.dumps(run.rows)};</script></html>")
    with open(".nextflow_history", "w") as f:
        f.write(f"{START:%Y-%m-%d %H:%M:%S}\t{human_ms((end - START).total_seconds())}\t{RUN_NAME}\tOK\t6c5ffa4d1b\t{SESSION}\tnextflow run main.nf\n")
    hours = (end - START).total_seconds() / 3600
    print(f"\nCompleted at: {end:%d-%b-%Y %H:%M:%S}\nDuration    : {human_ms((end - START).total_seconds())}")
    print(f"CPU hours   : {hours:.4f}\nSucceeded   : {run.n}")
    print("top transcripts:", [max(sorted(quant[s]), key=quant[s].get) for s in SAMPLES])


if __name__ == "__main__":
    main()
