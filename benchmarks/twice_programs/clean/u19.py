"""Run a parameterised analysis notebook cell by cell and keep the executed notebook.

Modelled on: nteract/papermill (papermill/execute.py, engines.py, log lines "Executing Cell 3----",
"Ending Cell 3----", progress bar) with the statsmodels/statsmodels OLS and Logit examples as content:
output.ipynb with metadata.papermill {start_time, end_time, duration, exception, version}, random cell
ids, iopub time stamps; the summaries of statsmodels print Date: and Time:. Also a nbconvert-like HTML.
"""
import ast
import contextlib
import datetime
import html
import io
import json
import logging
import secrets
import sys
import time
from pathlib import Path

from tqdm import tqdm

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s:%(lineno)d %(levelname)s %(message)s")
log = logging.getLogger("papermill")

CELLS = [
    ("markdown", "# Wages and schooling\nOLS with robust errors, then a logit for union membership.", []),
    ("code", "n = 100\nseed = 1", ["parameters"]),
    ("code", "import numpy as np\nimport pandas as pd\nimport statsmodels.formula.api as smf\n"
             "print('libraries loaded')", []),
    ("code", """rng = np.random.default_rng(seed)
educ = rng.integers(8, 19, n)
exper = rng.integers(0, 40, n)
female = rng.integers(0, 2, n)
wage = np.exp(0.6 + 0.08 * educ + 0.02 * exper - 0.0003 * exper**2 - 0.15 * female + rng.normal(0, 0.4, n))
union = (rng.random(n) < 1 / (1 + np.exp(2.0 - 0.04 * exper - 0.3 * female))).astype(int)
df = pd.DataFrame(dict(wage=wage, educ=educ, exper=exper, female=female, union=union))
df.describe().round(4)""", []),
    ("code", """ols = smf.ols('np.log(wage) ~ educ + exper + I(exper**2) + female', data=df).fit(cov_type='HC1')
print(ols.summary())""", []),
    ("code", "ols.params", []),
    ("code", """logit = smf.logit('union ~ exper + female', data=df).fit()
print(logit.summary())
logit.get_margeff().summary_frame().round(8)""", []),
    ("code", """boot = np.random.default_rng(seed + 1)
X = ols.model.exog; y = ols.model.endog
draws = []
for _ in range(300):
    i = boot.integers(0, n, n)
    draws.append(np.linalg.lstsq(X[i], y[i], rcond=None)[0])
se = pd.Series(np.std(draws, axis=0, ddof=1), index=ols.params.index)
se""", []),
    ("code", "from time import perf_counter\nt = perf_counter()\n_ = np.linalg.svd(rng.standard_normal((200, 200)))\n"
             "print(f'svd took {1000 * (perf_counter() - t):.2f} ms')", []),
]


def utcnow():
    return datetime.datetime.now(datetime.timezone.utc)


def iso():
    return utcnow().isoformat().replace("+00:00", "")


def parameterize(params):
    nb = {"cells": [], "metadata": {"kernelspec": {"name": "python3", "language": "python"}},
          "nbformat": 4, "nbformat_minor": 5}
    for kind, src, tags in CELLS:
        cell = {"cell_type": kind, "id": secrets.token_hex(4), "metadata": {"tags": tags}, "source": src}
        if kind == "code":
            cell.update(outputs=[], execution_count=None)
        nb["cells"].append(cell)
        if "parameters" in tags:
            inj = "# Parameters\n" + "\n".join(f"{k} = {v!r}" for k, v in params.items())
            nb["cells"].append({"cell_type": "code", "id": secrets.token_hex(4), "source": inj, "outputs": [],
                                "metadata": {"tags": ["injected-parameters"]}, "execution_count": None})
    return nb


class Engine:
    def __init__(self, path):
        self.path, self.ns, self.count = path, {"__name__": "__main__"}, 0

    def save(self, nb):
        self.path.write_text(json.dumps(nb, indent=1, ensure_ascii=False))

    def run_cell(self, cell):
        self.count += 1
        cell["execution_count"] = self.count
        tree = ast.parse(cell["source"])
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        out, value = io.StringIO(), None
        stamps = {"iopub.status.busy": utcnow().isoformat(), "shell.execute_reply.started": utcnow().isoformat()}
        with contextlib.redirect_stdout(out):
            exec(compile(tree, "<cell>", "exec"), self.ns)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.ns)
        if out.getvalue():
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": out.getvalue()})
        if value is not None:
            data = {"text/plain": repr(value)}
            if hasattr(value, "to_html"):
                data["text/html"] = value.to_html()
            cell["outputs"].append({"output_type": "execute_result", "execution_count": self.count, "data": data,
                                    "metadata": {}})
        cell["metadata"]["execution"] = {**stamps, "iopub.status.idle": utcnow().isoformat()}

    def execute(self, nb, params):
        start, t0 = iso(), time.time()
        pm = nb["metadata"]["papermill"] = {"default_parameters": {}, "parameters": params, "version": "2.6.0",
                                            "environment_variables": {}, "input_path": "wages.ipynb",
                                            "output_path": str(self.path), "start_time": start, "exception": None}
        for i, cell in enumerate(tqdm(nb["cells"], desc="Executing", unit="cell", file=sys.stderr), 1):
            c0 = time.time()
            meta = {"start_time": iso(), "exception": False, "status": "completed"}
            if cell["cell_type"] == "code":
                log.info("Executing Cell %d---------------------------------------", i)
                self.run_cell(cell)
                log.info("Ending Cell %d------------------------------------------", i)
            cell["metadata"]["papermill"] = {**meta, "end_time": iso(), "duration": round(time.time() - c0, 6)}
            self.save(nb)
        pm["end_time"], pm["duration"] = iso(), round(time.time() - t0, 6)
        self.save(nb)
        return nb


def to_html(nb, path):
    parts = []
    for c in nb["cells"]:
        if c["cell_type"] == "markdown":
            parts.append(f"<div class='md'>{html.escape(c['source'])}</div>")
            continue
        parts.append(f"<div id='cell-id={c['id']}'><pre>In [{c['execution_count']}]: {html.escape(c['source'])}</pre>")
        for o in c["outputs"]:
            parts.append(f"<pre>{html.escape(o['text'])}</pre>" if o["output_type"] == "stream"
                         else o["data"].get("text/html", f"<pre>{html.escape(o['data']['text/plain'])}</pre>"))
        parts.append(f"<small>{c['metadata']['papermill']['duration']} s</small></div>")
    path.write_text(f"<!DOCTYPE html><html><head><title>wages</title><meta name='generated' content="
                    f"'{datetime.datetime.now().ctime()}'></head><body>{''.join(parts)}</body></html>")


def main():
    params = {"n": 900, "seed": 20240229}
    out = Path("output.ipynb")
    log.info("Input Notebook:  wages.ipynb")
    log.info("Output Notebook: %s", out.resolve())
    engine = Engine(out)
    nb = engine.execute(parameterize(params), params)
    to_html(nb, Path("output.html"))
    print("coefficients")
    for k, v in engine.ns["ols"].params.items():
        print(f"  {k:16s} {v: .12f}  boot se {engine.ns['se'][k]:.12f}")
    print(f"logit llf {engine.ns['logit'].llf:.10f}")
    print(f"executed {engine.count} cells in {nb['metadata']['papermill']['duration']:.2f}s")


if __name__ == "__main__":
    main()
