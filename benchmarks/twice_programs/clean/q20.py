"""Population pharmacokinetics (one compartment, oral, FO) with a NONMEM listing.

Output format: NONMEM .lst (dates at both ends, ITERATION NO. blocks, #TERM,
elapsed times), .ext table and .xml with the elapsed time elements.
Seen at: https://github.com/FeRx-NLME/ferx-core/issues/266
         https://github.com/nlmixr2/nonmem2rx/issues/202
Field: pharmacometrics.
"""
import os
import shutil
import sys
import tempfile
import time
from datetime import datetime, timezone

import numpy as np
from scipy.optimize import minimize

IDS, DOSE = 24, 320.0
TIMES = np.array([0.25, 0.5, 1, 2, 3.5, 5, 7, 9, 12, 24])
TRUE = dict(ka=1.5, cl=2.8, v=32.0, w_ka=0.30, w_cl=0.08, w_v=0.03, sigma=0.25)
LABELS = ("KA", "CL", "V", "OM_KA", "OM_CL", "OM_V", "SIGMA")


def conc(ka, cl, v, t):
    k = cl / v
    return DOSE * ka / (v * (ka - k)) * (np.exp(-k * t) - np.exp(-ka * t))


def dataset():
    rng = np.random.default_rng(266)
    rows = []
    for i in range(IDS):
        eta = rng.normal(0, np.sqrt([TRUE["w_ka"], TRUE["w_cl"], TRUE["w_v"]]))
        y = conc(TRUE["ka"] * np.exp(eta[0]), TRUE["cl"] * np.exp(eta[1]), TRUE["v"] * np.exp(eta[2]), TIMES)
        rows.append(np.round(y + rng.normal(0, TRUE["sigma"], TIMES.size), 3))
    return np.array(rows)


class Model:
    def __init__(self, data):
        self.data, self.evals = data, 0
        self.start = np.log([1.0, 2.0, 25.0, 0.2, 0.1, 0.05, 0.3])

    def unpack(self, par):
        return np.exp(np.clip(self.start + par - 0.1, -12, 12))

    def ofv(self, par):
        """-2 log likelihood of the first order approximation, without the constant."""
        self.evals += 1
        ka, cl, v, *om, sig = self.unpack(par)
        f = conc(ka, cl, v, TIMES)
        h = 1e-5
        g = np.column_stack([(conc(ka * np.exp(h), cl, v, TIMES) - conc(ka * np.exp(-h), cl, v, TIMES)) / (2 * h),
                             (conc(ka, cl * np.exp(h), v, TIMES) - conc(ka, cl * np.exp(-h), v, TIMES)) / (2 * h),
                             (conc(ka, cl, v * np.exp(h), TIMES) - conc(ka, cl, v * np.exp(-h), TIMES)) / (2 * h)])
        cov = g @ np.diag(om) @ g.T + sig ** 2 * np.eye(TIMES.size)
        sign, logdet = np.linalg.slogdet(cov)
        total = 0.0
        for y in self.data:                       # subject by subject, as the tool does
            r = y - f
            total += logdet + r @ np.linalg.solve(cov, r)
        return total

    def gradient(self, par, h=1e-5):
        steps = np.eye(par.size) * h
        return np.array([(self.ofv(par + e) - self.ofv(par - e)) / (2 * h) for e in steps])


def fmt(values):
    return " ".join(f"{v:11.4E}" for v in values)


def main():
    t_begin, cpu0 = time.perf_counter(), time.process_time()
    started = datetime.now(timezone.utc)
    work = tempfile.mkdtemp(prefix="nm_temp_")
    lst = []

    def say(text=""):
        lst.append(text)
        print(text)

    say(started.strftime("%a %b %d %H:%M:%S UTC %Y"))
    say("$PROBLEM ONE COMPARTMENT ORAL\n$INPUT ID TIME DV\n" + f"$DATA {os.path.join(work, 'theo.csv')} IGNORE=@")
    say("$SUBROUTINES ADVAN2 TRANS2\n$ESTIMATION METHOD=0 PRINT=5 MAXEVAL=9999\n$COVARIANCE MATRIX=R\n")
    say(f"License Registered to: {os.uname().nodename}\nCurrent Date:   {started:%d %b %Y}\nDays until program expires :{(datetime(2030, 1, 1, tzinfo=timezone.utc) - started).days:5d}")
    say("1NONLINEAR MIXED EFFECTS MODEL PROGRAM (NONMEM) VERSION 7.5.1\n")
    data = dataset()
    with open(os.path.join(work, "theo.csv"), "w") as fh:
        fh.write("ID,TIME,DV\n")
        fh.writelines(f"{i + 1},{t},{y}\n" for i, row in enumerate(data) for t, y in zip(TIMES, row))
    say(f" TOT. NO. OF INDIVIDUALS:     {IDS}\n TOT. NO. OF OBS RECS:      {data.size}\n")
    m = Model(data)
    x = np.full(7, 0.1)
    ext = [("ITERATION",) + LABELS + ("OBJ",)]
    state = {"n": 0, "last": 0}
    say("1\n #TBLN:      1\n #METH: First Order\n")

    def show(par, force=False):
        n = state["n"]
        before = m.evals
        val = m.ofv(par)
        grad = m.gradient(par)
        m.evals = before
        ext.append((n,) + tuple(f"{v:.6E}" for v in m.unpack(par)) + (f"{val:.6f}",))
        if force or n % 5 == 0:
            say(f"0ITERATION NO.: {n:4d}    OBJECTIVE VALUE:  {val:.10f}        NO. OF FUNC. EVALS.: {m.evals - state['last']:3d}")
            say(f" CUMULATIVE NO. OF FUNC. EVALS.: {m.evals:8d}\n NPARAMETR: {fmt(m.unpack(par))}\n PARAMETER: {fmt(par)}\n GRADIENT:  {fmt(np.round(grad, 3) + 0.0)}\n")
            sys.stderr.write(f"iteration {n} at {time.perf_counter() - t_begin:.2f} s, {m.evals / (time.perf_counter() - t_begin):.0f} evaluations/s\n")
            state["last"] = m.evals
        state["n"] += 1

    show(x)
    t_est = time.perf_counter()
    res = minimize(m.ofv, x, method="BFGS", jac=m.gradient, callback=show, options={"gtol": 1e-3, "maxiter": 80})
    state["n"] -= 1
    if state["n"] % 5:
        show(res.x, force=True)
    t_est = time.perf_counter() - t_est
    say(f" #TERM:\n0MINIMIZATION SUCCESSFUL\n NO. OF FUNCTION EVALUATIONS USED: {m.evals:8d}\n")
    say(f" Elapsed estimation  time in seconds: {t_est:8.2f}")
    t_cov = time.perf_counter()
    h, n = 1e-3, 7
    hess = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            ei, ej = np.eye(n)[i] * h, np.eye(n)[j] * h
            hess[i, j] = hess[j, i] = (m.ofv(res.x + ei + ej) - m.ofv(res.x + ei - ej) - m.ofv(res.x - ei + ej) + m.ofv(res.x - ei - ej)) / (4 * h * h)
    cov = np.linalg.inv(hess / 2)
    t_cov = time.perf_counter() - t_cov
    say(f" Elapsed covariance  time in seconds: {t_cov:8.2f}")
    t_post = time.perf_counter()
    est = m.unpack(res.x)
    rse = 100 * np.sqrt(np.abs(np.diag(cov)))
    say("\n #OBJT:**************                       MINIMUM VALUE OF OBJECTIVE FUNCTION                  ********************")
    say(f" #OBJV:********************************************  {res.fun:14.4f}   **************************************************\n")
    say("                 FINAL PARAMETER ESTIMATE           RSE(%)          TRUE")
    for name, e, r, true in zip(LABELS, est, rse, TRUE.values()):
        say(f" {name:<10} {e:24.4E} {r:18.2f} {true:13.3f}")
    eig = np.sort(np.linalg.eigvalsh(cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov)))))
    say("\n EIGENVALUES OF COR MATRIX OF ESTIMATE\n " + fmt(eig))
    say(f" Elapsed postprocess time in seconds: {time.perf_counter() - t_post:8.2f}")
    with open("run1.ext", "w") as fh:
        fh.write("TABLE NO.     1: First Order\n")
        fh.writelines(" ".join(f"{str(c):>14}" for c in row) + "\n" for row in ext)
    with open("run1.xml", "w") as fh:
        fh.write('<?xml version="1.0" encoding="ASCII"?>\n<nm:output xmlns:nm="http://namespaces.oreilly.com/xmlnut/address">\n')
        fh.write(f"<nm:start_datetime>{started.isoformat()}</nm:start_datetime>\n<nm:program_information pid='{os.getpid()}' dir='{work}'/>\n")
        for key, val in (("estimation", t_est), ("covariance", t_cov), ("post", time.perf_counter() - t_post)):
            fh.write(f"<nm:{key}_elapsed_time>{val:.2f}</nm:{key}_elapsed_time>\n")
        fh.write(f"<nm:final_objective_function>{res.fun:.6f}</nm:final_objective_function>\n")
        fh.writelines(f'<nm:theta nm:name="{k}">{v:.6E}</nm:theta>\n' for k, v in zip(LABELS, est))
        fh.write(f"<nm:total_cputime>{time.process_time() - cpu0:.3f}</nm:total_cputime>\n<nm:stop_datetime>{datetime.now(timezone.utc).isoformat()}</nm:stop_datetime>\n</nm:output>\n")
    say(f" #CPUT: Total CPU Time in Seconds,    {time.process_time() - cpu0:8.3f}")
    say(f"Stop Time:\n{datetime.now(timezone.utc):%a %b %d %H:%M:%S UTC %Y}")
    with open("run1.lst", "w") as fh:
        fh.write("\n".join(lst) + "\n")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
