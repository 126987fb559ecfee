"""A k-mer and GC pipeline of subprocesses in hashed work folders, with Nextflow's console, trace file and HTML report.

Format: https://docs.seqera.io/nextflow/reports (log: run name, session id, work folders) and
https://gist.github.com/seandavi/5a6c2b0b162c916cf9b2e3673c856c32 (trace columns);
.nextflow.log lines as in https://gist.github.com/Rohit-Satyam/a1bb74075b4c80e779b804a8d88eb9e5
"""
import asyncio
import html
import json
import os
import random
import resource
import secrets
import shutil
import sys
import tempfile
import time
import uuid
from datetime import datetime

SAMPLES = ["ggal_gut", "ggal_liver", "ggal_lung", "ggal_brain", "ggal_heart"]
SEED, READS, MAX_FORKS = 15, 1800, 3
ADJ = ["naughty", "thirsty", "goofy", "grave", "small", "scruffy", "happy", "sleepy", "mad", "tiny"]
NAMES = ["heisenberg", "swanson", "kilby", "poincare", "goldstine", "archimedes", "curie", "noether", "euler", "darwin"]
SESSION = str(uuid.uuid4())
RUN_NAME = f"{secrets.choice(ADJ)}_{secrets.choice(NAMES)}"
LOG = open(".nextflow.log", "w")
START = datetime.now()

SCRIPTS = {
    "MAKE_READS": """
import random,sys
rng=random.Random(sys.argv[1]); n=int(sys.argv[2]); gc=float(sys.argv[3])
with open('reads.fastq','w') as f:
    for i in range(n):
        s=''.join(rng.choices('ACGT',weights=[1-gc,gc,gc,1-gc],k=100))
        q=''.join(chr(33+min(40,max(2,int(rng.gauss(36-0.22*k,5))))) for k in range(100))
        f.write(f'@r{i}\\n{s}\\n+\\n{q}\\n')
print(n)
""",
    "TRIM": """
import sys
kept=bases=0
out=open('trimmed.fastq','w')
it=iter(open(sys.argv[1]))
for h in it:
    s,p,q=next(it).strip(),next(it),next(it).strip()
    e=len(q)
    while e and ord(q[e-1])-33<24: e-=1
    if e>=40:
        kept+=1; bases+=e
        out.write(h+s[:e]+'\\n+\\n'+q[:e]+'\\n')
print(kept,bases)
""",
    "KMERS": """
import sys,collections,json
c=collections.Counter()
gc=n=0
for i,l in enumerate(open(sys.argv[1])):
    if i%4==1:
        l=l.strip()
        gc+=l.count('G')+l.count('C'); n+=len(l)
        for k in range(len(l)-7): c[l[k:k+8]]+=1
json.dump({'gc':gc/n,'distinct':len(c),'top':sorted(c.items(),key=lambda t:(-t[1],t[0]))[:5]},open('kmers.json','w'))
print(gc,n,len(c))
""",
    "MULTIQC": """
import sys,json
rows=[]
for p in sys.argv[1:]:
    name,path=p.split('=')
    d=json.load(open(path)); rows.append((name,d['gc'],d['distinct'],d['top'][0][0],d['top'][0][1]))
with open('summary.tsv','w') as f:
    f.write('sample\\tgc\\tdistinct_8mers\\ttop\\tcount\\n')
    for r in sorted(rows): f.write('%s\\t%.8f\\t%d\\t%s\\t%d\\n'%r)
print(len(rows))
""",
}


def nlog(level, cls, msg):
    t = datetime.now()
    LOG.write(f"{t:%b-%d %H:%M:%S}.{t.microsecond // 1000:03d} [main] {level} {cls} - {msg}\n")
    LOG.flush()


def dur(sec):
    return f"{sec * 1000:.0f}ms" if sec < 1 else f"{sec:.1f}s"


class Pipeline:
    def __init__(self, work):
        self.work, self.rows, self.next_id = work, [], 0
        self.sem = asyncio.Semaphore(MAX_FORKS)
        self.ncpu = 0.0

    async def task(self, process, tag, *args):
        self.next_id += 1
        tid = self.next_id
        h = secrets.token_hex(16)                   # the task hash takes in the session id
        folder = os.path.join(self.work, h[:2], h[2:])
        os.makedirs(folder)
        submit = time.time()
        async with self.sem:
            start = time.time()
            p = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", SCRIPTS[process], *map(str, args), cwd=folder,
                                                     stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
            print(f"[{h[:2]}/{h[2:8]}] process > {process} ({tag})", flush=True)
            nlog("INFO", "nextflow.Session", f"[{h[:2]}/{h[2:8]}] Submitted process > {process} ({tag})")
            out, err = await p.communicate()
            end = time.time()
        if p.returncode:
            raise RuntimeError(err.decode())
        ru = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = ru.ru_utime + ru.ru_stime
        nlog("DEBUG", "n.processor.TaskPollingMonitor",
             f"Task completed > TaskHandler[id: {tid}; name: {process} ({tag}); status: COMPLETED; exit: 0; workDir: {folder}]")
        self.rows.append({"task_id": tid, "hash": f"{h[:2]}/{h[2:8]}", "native_id": p.pid, "name": f"{process} ({tag})",
                          "status": "COMPLETED", "exit": 0, "submit": datetime.fromtimestamp(submit).isoformat(" ", "milliseconds"),
                          "duration": dur(end - submit), "realtime": dur(end - start),
                          "%cpu": f"{100 * (cpu - self.ncpu) / (end - start):.1f}%", "peak_rss": f"{ru.ru_maxrss / 1024:.1f} MB",
                          "sec": end - start, "out": out.decode().strip()})
        self.ncpu = cpu
        return folder, out.decode().strip()

    async def sample(self, name, k):
        d1, n = await self.task("MAKE_READS", name, f"{SEED}-{name}", READS + 150 * k, 0.42 + 0.03 * k)
        d2, trim = await self.task("TRIM", name, os.path.join(d1, "reads.fastq"))
        d3, km = await self.task("KMERS", name, os.path.join(d2, "trimmed.fastq"))
        return name, n, trim, km, os.path.join(d3, "kmers.json")


async def run(work):
    pipe = Pipeline(work)
    res = await asyncio.gather(*(pipe.sample(s, k) for k, s in enumerate(SAMPLES)))
    folder, _ = await pipe.task("MULTIQC", "all", *(f"{r[0]}={r[4]}" for r in res))
    shutil.copy(os.path.join(folder, "summary.tsv"), "summary.tsv")
    return pipe.rows, res


def report(rows, total):
    longest = max(r["sec"] for r in rows)
    trs = "".join(f"<tr><td>{r['task_id']}</td><td>{html.escape(r['name'])}</td><td>{r['hash']}</td><td>{r['realtime']}</td>"
                  f"<td><div style='width:{100 * r['sec'] / longest:.1f}%'></div></td><td>{r['peak_rss']}</td></tr>\n" for r in rows)
    with open("report.html", "w") as f:
        f.write(f"<html><head><title>[{RUN_NAME}] Nextflow Workflow Report</title></head><body><h1>Workflow execution completed "
                f"successfully!</h1><dl><dt>Run times</dt><dd>{START:%d-%b-%Y %H:%M:%S} - {datetime.now():%d-%b-%Y %H:%M:%S} "
                f"(duration: {dur(total)})</dd><dt>Session ID</dt><dd>{SESSION}</dd><dt>Launch directory</dt><dd>{os.getcwd()}</dd>"
                f"</dl><table>{trs}</table>"
                f"<script>window.data = {json.dumps([{'name': r['name'], 'realtime': round(r['sec'] * 1000)} for r in rows])};</script>"
                "</body></html>\n")


def main():
    t0 = time.perf_counter()
    work = tempfile.mkdtemp(prefix="nxf-work-")
    print("N E X T F L O W  ~  version 21.10.6")
    print(f"Launching `main.nf` [{RUN_NAME}] - revision: c0bb013155", flush=True)
    nlog("INFO", "nextflow.cli.CmdRun", f"Launching `main.nf` [{RUN_NAME}] - revision: c0bb013155")
    nlog("DEBUG", "nextflow.Session", f"Session uuid: {SESSION}")
    nlog("DEBUG", "nextflow.Session", f"Work-dir: {work}")
    print(f"executor >  local ({3 * len(SAMPLES) + 1})")
    rows, res = asyncio.run(run(work))
    shutil.rmtree(work)
    rows.sort(key=lambda r: r["task_id"])
    cols = ["task_id", "hash", "native_id", "name", "status", "exit", "submit", "duration", "realtime", "%cpu", "peak_rss"]
    with open(f"trace-{START:%Y%m%d}-{int(START.timestamp()) % 100000:05d}.txt", "w") as f:
        f.write("\t".join(cols) + "\n")
        f.writelines("\t".join(str(r[c]) for c in cols) + "\n" for r in rows)
    total = time.perf_counter() - t0
    report(rows, total)
    for name, n, trim, km, _ in sorted(res):
        print(f"{name}: {n} reads, kept {trim.split()[0]} with {trim.split()[1]} bases, gc/n/8-mers {km}")
    print(f"Completed at: {datetime.now():%d-%b-%Y %H:%M:%S}\nDuration    : {dur(total)}\n"
          f"CPU hours   : {sum(r['sec'] for r in rows) / 3600:.4f}\nSucceeded   : {len(rows)}")
    nlog("DEBUG", "nextflow.script.ScriptRunner", "> Execution complete -- Goodbye")


if __name__ == "__main__":
    main()
