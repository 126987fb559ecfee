"""A CDCL solver on random 3-SAT instances, with the statistics block of CryptoMiniSat.

Log format: https://github.com/msoos/cryptominisat/issues/265
(c conflicts : 33402308 (239.81 / sec), c UIP search time : ... (97.49 % time), ...) and `c <unixtime>` marks as in issue 312
"""
import csv
import heapq
import pickle
import random
import resource
import sys
import time

INSTANCES = [("uf150-a", 150, 4.25, 1), ("uf160-b", 160, 4.2, 2), ("uuf130-c", 130, 4.6, 3), ("uf170-d", 170, 4.1, 4), ("uuf140-e", 140, 4.5, 5)]


def make_cnf(n, ratio, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(int(n * ratio)):
        out.append([v if rng.random() < 0.5 else -v for v in rng.sample(range(1, n + 1), 3)])
    return out


class Solver:
    def __init__(self, n, clauses):
        self.n = n
        self.clauses = [list(c) for c in clauses]
        self.watch = {l: [] for v in range(1, n + 1) for l in (v, -v)}
        for c in self.clauses:
            self.watch[c[0]].append(c)
            self.watch[c[1]].append(c)
        self.val = [None] * (n + 1)
        self.level = [0] * (n + 1)
        self.reason = [None] * (n + 1)
        self.phase = [False] * (n + 1)
        self.act = [0.0] * (n + 1)
        self.inc = 1.0
        self.trail, self.lim, self.qhead = [], [], 0
        self.heap = [(0.0, v) for v in range(1, n + 1)]
        self.st = dict(conflicts=0, decisions=0, propagations=0, restarts=0, learnt=0, lits=0, lits_min=0, removed=0)
        self.learnts = []
        self.t = dict(propagate=0.0, analyze=0.0, clean=0.0)

    def value(self, l):
        v = self.val[abs(l)]
        return None if v is None else v == (l > 0)

    def assign(self, l, reason):
        v = abs(l)
        self.val[v], self.level[v], self.reason[v] = l > 0, len(self.lim), reason
        self.trail.append(l)

    def propagate(self):
        while self.qhead < len(self.trail):
            l = -self.trail[self.qhead]
            self.qhead += 1
            self.st["propagations"] += 1
            keep, ws = [], self.watch[l]
            for k, c in enumerate(ws):
                if c[0] == l:
                    c[0], c[1] = c[1], c[0]
                if self.value(c[0]) is True:
                    keep.append(c)
                    continue
                for i in range(2, len(c)):
                    if self.value(c[i]) is not False:
                        c[1], c[i] = c[i], c[1]
                        self.watch[c[1]].append(c)
                        break
                else:
                    keep.append(c)
                    if self.value(c[0]) is False:
                        self.watch[l] = keep + ws[k + 1:]
                        return c
                    self.assign(c[0], c)
            self.watch[l] = keep
        return None

    def bump(self, v):
        self.act[v] += self.inc
        heapq.heappush(self.heap, (-self.act[v], v))

    def analyze(self, conf):
        seen, out, count, l = set(), [0], 0, None
        idx = len(self.trail) - 1
        c = conf
        while True:
            for q in c:
                v = abs(q)
                if q != l and v not in seen and self.level[v] > 0:
                    seen.add(v)
                    self.bump(v)
                    if self.level[v] == len(self.lim):
                        count += 1
                    else:
                        out.append(q)
            while abs(self.trail[idx]) not in seen:
                idx -= 1
            l = self.trail[idx]
            idx -= 1
            c = self.reason[abs(l)]
            count -= 1
            if count == 0:
                break
        out[0] = -l
        self.st["lits"] += len(out)
        small = [out[0]] + [q for q in out[1:] if self.reason[abs(q)] is None or
                            any(abs(x) not in seen and self.level[abs(x)] > 0 for x in self.reason[abs(q)])]
        self.st["lits_min"] += len(small)
        self.inc /= 0.95
        if self.inc > 1e100:
            self.act = [a * 1e-100 for a in self.act]
            self.inc *= 1e-100
            self.heap = [(-self.act[v], v) for v in range(1, self.n + 1)]
            heapq.heapify(self.heap)
        if len(small) == 1:
            return small, 0
        k = max(range(1, len(small)), key=lambda i: self.level[abs(small[i])])
        small[1], small[k] = small[k], small[1]
        return small, self.level[abs(small[1])]

    def backtrack(self, lev):
        if len(self.lim) > lev:
            for l in self.trail[self.lim[lev]:]:
                v = abs(l)
                self.phase[v], self.val[v], self.reason[v] = l > 0, None, None
                heapq.heappush(self.heap, (-self.act[v], v))
            del self.trail[self.lim[lev]:]
            del self.lim[lev:]
            self.qhead = len(self.trail)

    def clean(self):
        t = time.perf_counter()
        locked = {id(self.reason[abs(l)]) for l in self.trail if self.reason[abs(l)] is not None}
        order = sorted(range(len(self.learnts)), key=lambda i: (len(self.learnts[i]), -i))
        drop = {id(self.learnts[i]) for i in order[len(order) // 2:] if len(self.learnts[i]) > 3} - locked
        self.learnts = [c for c in self.learnts if id(c) not in drop]
        for l in self.watch:
            self.watch[l] = [c for c in self.watch[l] if id(c) not in drop]
        self.st["removed"] += len(drop)
        self.t["clean"] += time.perf_counter() - t

    def solve(self):
        limit, since = 100, 0
        while True:
            t = time.perf_counter()
            conf = self.propagate()
            self.t["propagate"] += time.perf_counter() - t
            if conf is not None:
                self.st["conflicts"] += 1
                since += 1
                if not self.lim:
                    return False
                t = time.perf_counter()
                learnt, lev = self.analyze(conf)
                self.t["analyze"] += time.perf_counter() - t
                self.backtrack(lev)
                if len(learnt) > 1:
                    self.watch[learnt[0]].append(learnt)
                    self.watch[learnt[1]].append(learnt)
                    self.learnts.append(learnt)
                    self.st["learnt"] += 1
                self.assign(learnt[0], learnt if len(learnt) > 1 else None)
                continue
            if since >= limit:
                self.st["restarts"] += 1
                since, limit = 0, int(limit * 1.15)
                self.backtrack(0)
                if len(self.learnts) > 600 + 100 * self.st["restarts"]:
                    self.clean()
                continue
            v = None
            while self.heap:
                _, v = heapq.heappop(self.heap)
                if self.val[v] is None:
                    break
            else:
                return True
            if self.val[v] is not None:
                return True
            self.st["decisions"] += 1
            self.lim.append(len(self.trail))
            self.assign(v if self.phase[v] else -v, None)


def main():
    t_all = time.perf_counter()
    log = open("cms.log", "w")

    def say(msg):
        print(msg, flush=True)
        log.write(f"c {int(time.time())} {msg}\n")      # time of each line, as by gawk systime()

    say("c CryptoMiniSat version 5.8.0 (python)")
    say(f"c Executed with command line: {sys.executable} {sys.argv[0]}")
    rows, models = [], {}
    for name, n, ratio, seed in INSTANCES:
        t0, c0 = time.perf_counter(), time.process_time()
        cnf = make_cnf(n, ratio, seed)
        say(f"c Reading file '{name}.cnf'\nc -- clauses added: {len(cnf)}\nc -- vars added {n}  T: {time.perf_counter() - t0:.4f} s")
        s = Solver(n, cnf)
        sat = s.solve()
        sec, cpu = time.perf_counter() - t0, time.process_time() - c0
        st = s.st
        cf = max(st["conflicts"], 1)
        line = lambda k, v, x="": say(f"c {k:<24} : {v:<11} {x}".rstrip())
        say("c ------- FINAL TOTAL SEARCH STATS ---------")
        search = s.t["propagate"] + s.t["analyze"]
        line("UIP search time", f"{search:.2f}", f"({100 * search / sec:.2f}     % time)")
        line("restarts", st["restarts"], f"({cf / max(st['restarts'], 1):.2f}    confls per restart)")
        line("time", f"{sec:.2f}")
        line("decisions", st["decisions"], "(0.00      % random)")
        line("decisions/conflicts", f"{st['decisions'] / cf:.2f}")
        line("conflicts", st["conflicts"], f"({st['conflicts'] / sec:.2f}    / sec)")
        line("conf lits non-minim", st["lits"], f"({st['lits'] / cf:.2f}   lit/confl)")
        line("conf lits final", f"{st['lits_min'] / cf:.2f}")
        line("props/decision", f"{st['propagations'] / max(st['decisions'], 1):.2f}")
        line("props/conflict", f"{st['propagations'] / cf:.2f}")
        line("Mprops", f"{st['propagations'] / 1e6:.2f}", f"({st['propagations'] / sec / 1e6:.4f}    / sec)")
        line("DB clean time", f"{s.t['clean']:.2f}", f"({100 * s.t['clean'] / sec:.2f}      % time), removed {st['removed']}")
        line("Mem used", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.2f}", "MB")
        line("CPU time", f"{cpu:.2f}")
        say("s SATISFIABLE" if sat else "s UNSATISFIABLE")
        if sat:
            model = [v if s.val[v] else -v for v in range(1, n + 1)]
            assert all(any(l in c for l in c) and any(model[abs(l) - 1] == l for l in c) for c in cnf)
            models[name] = model
            say("v " + " ".join(map(str, model)) + " 0")
        rows.append([name, "SAT" if sat else "UNSAT", st["conflicts"], st["decisions"], st["propagations"], st["restarts"],
                     f"{sec:.6f}", f"{st['conflicts'] / sec:.1f}"])
    with open("results.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["instance", "status", "conflicts", "decisions", "propagations", "restarts", "seconds", "conflicts_per_sec"])
        w.writerows(rows)
    with open("models.pkl", "wb") as f:
        pickle.dump({"models": models, "written": time.time(), "total_seconds": time.perf_counter() - t_all}, f)
    say(f"c Total time: {time.perf_counter() - t_all:.2f} s")


if __name__ == "__main__":
    main()
