"""A small build tool that compiles and tests a generated workspace in sandboxes, with the console output of Bazel.

Output format: https://github.com/bazelbuild/bazel/issues/7077 (INFO: Elapsed time, Critical Path, PASSED in 0.1s)
and https://github.com/bazelbuild/bazel/issues/5606. Also writes JUnit test.xml, a build event file, and command.profile.gz.
"""
import gzip
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

SEED, N_LIBS, N_TESTS, JOBS = 4, 36, 18, 3
T0 = time.time()
INVOCATION = str(uuid.uuid4())
PROFILE, EVENTS, LOCK = [], [], threading.Lock()


def err(msg):
    with LOCK:
        print(msg, file=sys.stderr, flush=True)


def event(kind, **data):
    with LOCK:
        EVENTS.append({"id": {kind: {}}, "timeMillis": int(time.time() * 1000), **data})


def make_workspace(root):
    rng = random.Random(SEED)
    deps = {}
    for i in range(N_LIBS):
        mine = sorted(rng.sample(range(i), min(i, rng.randint(0, 2))))
        deps[f"lib{i}"] = [f"lib{d}" for d in mine]
        lines = [f"from lib{d} import f{d}" for d in mine]
        a, b, m = rng.randint(2, 90), rng.randint(1, 90), rng.choice([97, 101, 997, 1009])
        calls = " + ".join([f"f{d}(x + {rng.randint(1, 9)})" for d in mine] + ["x"])
        lines += ["", f"def f{i}(x):", f"    return ({a} * ({calls}) + {b}) % {m}", ""]
        with open(os.path.join(root, f"lib{i}.py"), "w") as f:
            f.write("\n".join(lines))
    tests = {}
    for t in range(N_TESTS):
        used = sorted(rng.sample(range(N_LIBS), 3))
        tests[f"test{t}"] = [f"lib{u}" for u in used]
        body = "".join(f"from lib{u} import f{u}\n" for u in used)
        body += f"n = {rng.randint(40000, 120000)}\ncases = 0\ntotal = 0\nfor x in range(n):\n"
        body += "".join(f"    v = f{u}(x)\n    assert 0 <= v < 1009\n    total += v\n    cases += 1\n" for u in used)
        body += "print(f'{cases} cases, total {total}')\n"
        with open(os.path.join(root, f"test{t}.py"), "w") as f:
            f.write(body)
    return deps, tests


def closure(name, deps):
    out = set()
    stack = [name]
    while stack:
        n = stack.pop()
        if n not in out:
            out.add(n)
            stack += deps.get(n, [])
    return sorted(out)


class Builder:
    def __init__(self, src, base, deps):
        self.src, self.base, self.deps = src, base, deps
        self.finish, self.digest = {}, {}

    def spawn(self, mnemonic, label, files, argv):
        box = tempfile.mkdtemp(prefix=f"{mnemonic}-", dir=self.base)
        for f in files:
            shutil.copy(os.path.join(self.src, f + ".py"), box)
        t = time.time()
        p = subprocess.run([sys.executable, *argv], cwd=box, capture_output=True, text=True, timeout=60)
        end = time.time()
        with LOCK:
            PROFILE.append({"cat": "action processing", "name": f"{mnemonic} {label}", "ph": "X", "pid": os.getpid(),
                            "tid": threading.get_ident(), "ts": int((t - T0) * 1e6), "dur": int((end - t) * 1e6)})
        shutil.rmtree(box)
        return p, end - t

    def compile(self, lib):
        code = f"import dis,io,{lib};s=io.StringIO();dis.dis({lib}.f{lib[3:]},file=s);print(len(s.getvalue().splitlines()))"
        p, dt = self.spawn("PyCompile", f"//pkg:{lib}", closure(lib, self.deps), ["-S", "-c", code])
        if p.returncode:
            raise RuntimeError(p.stderr)
        self.digest[lib] = hashlib.sha256((open(os.path.join(self.src, lib + ".py")).read() + p.stdout).encode()).hexdigest()
        self.finish[lib] = dt + max([self.finish[d] for d in self.deps[lib]], default=0.0)
        event("actionCompleted", label=f"//pkg:{lib}", type="PyCompile", durationMillis=int(dt * 1000))
        return lib


def main():
    base = tempfile.mkdtemp(prefix="_bazel_")
    src = os.path.join(base, "execroot")
    os.mkdir(src)
    err(f"Starting local Bazel server and connecting to it... (pid {os.getpid()})")
    err(f"INFO: Invocation ID: {INVOCATION}")
    event("started", uuid=INVOCATION, command="test", workingDirectory=os.getcwd(), serverPid=os.getpid())
    deps, tests = make_workspace(src)
    n = N_LIBS + N_TESTS
    err(f"INFO: Analyzed {n} targets (1 packages loaded, {n} targets configured).")
    err(f"INFO: Found {N_LIBS} targets and {N_TESTS} test targets...")
    b = Builder(src, base, deps)
    done = 0
    with ThreadPoolExecutor(JOBS) as ex:
        left = dict(deps)
        while left:                                   # level by level
            ready = [l for l in left if all(d in b.digest for d in left[l])]
            for lib in ex.map(b.compile, ready):
                done += 1
                err(f"[{done} / {n}] PyCompile pkg/{lib}.py; {time.time() - T0:.0f}s linux-sandbox")
                del left[lib]

        def run_test(t):
            p, dt = b.spawn("TestRunner", f"//pkg:{t}", sorted({c for l in tests[t] for c in closure(l, deps)}) + [t],
                            ["-S", t + ".py"])
            event("testResult", label=f"//pkg:{t}", status="PASSED" if p.returncode == 0 else "FAILED",
                  testAttemptStartMillisEpoch=int((time.time() - dt) * 1000), testAttemptDurationMillis=int(dt * 1000),
                  hostname=socket.gethostname())
            return t, p, dt

        results = list(ex.map(run_test, sorted(tests)))
    crit = max(b.finish.values()) + max(dt for _, _, dt in results)
    shutil.rmtree(base)

    suites = ET.Element("testsuites")
    for t, p, dt in results:
        s = ET.SubElement(suites, "testsuite", name=f"pkg/{t}", tests="1", failures=str(int(p.returncode != 0)), errors="0",
                          time=f"{dt:.3f}", timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                          hostname=socket.gethostname())
        ET.SubElement(s, "testcase", name=t, classname="pkg", time=f"{dt:.3f}")
        ET.SubElement(s, "system-out").text = p.stdout
    ET.indent(suites)
    ET.ElementTree(suites).write("test.xml", encoding="utf-8", xml_declaration=True)

    err(f"INFO: Elapsed time: {time.time() - T0:.3f}s, Critical Path: {crit:.2f}s")
    err(f"INFO: {n} processes: {n} linux-sandbox.")
    err(f"INFO: Build completed successfully, {n} total actions")
    for t, p, dt in results:
        print(f"//pkg:{t:<60} {'PASSED' if p.returncode == 0 else 'FAILED'} in {dt:.1f}s")
    for t, p, _ in results:
        print(f"==================== Test output for //pkg:{t}:\n{p.stdout}", end="")
    ok = sum(p.returncode == 0 for _, p, _ in results)
    print(f"\nExecuted {len(results)} out of {len(results)} tests: {ok} tests pass.")
    event("buildFinished", overallSuccess=ok == len(results), outputs={l: b.digest[l] for l in sorted(b.digest)})
    with open("build_events.json", "w") as f:
        f.writelines(json.dumps(e) + "\n" for e in EVENTS)
    with gzip.open("command.profile.gz", "wt") as f:
        json.dump({"otherData": {"build_id": INVOCATION, "date": time.ctime(T0)}, "traceEvents": PROFILE}, f)
    with open("outputs.sha256", "w") as f:
        f.writelines(f"{b.digest[l]}  pkg/{l}.pyc\n" for l in sorted(b.digest))


if __name__ == "__main__":
    main()
