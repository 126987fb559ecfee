"""Style of LuckyJH2024/LLMBenchMark (results/benchmark_report_<date>.md, JSON results). Differs in each run: Average
Duration and Memory Usage columns, latency percentiles, file names with dates, timestamps and task UUIDs, zip of the results."""
import json
import os
import platform
import resource
import statistics
import time
import uuid
import zipfile
from dataclasses import asdict, dataclass, field
from datetime import datetime

import numpy as np
import pandas as pd
import psutil
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier

TS = datetime.now().strftime("%Y%m%d_%H%M%S")
OUT = "results"
os.makedirs(OUT, exist_ok=True)


@dataclass
class TaskResult:
    model: str
    task_type: str
    question_id: int
    prediction: int
    score: float
    duration: float
    memory_usage: int
    task_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    timestamp: str = field(default_factory=lambda: datetime.now().isoformat())


def questions(task, n, seed):
    rng = np.random.default_rng(seed)
    topics = [[f"{task}{k}_{i}" for i in range(25)] for k in range(3)]
    common = [f"word{i}" for i in range(150)]
    texts, ys = [], []
    for _ in range(n):
        y = int(rng.integers(3))
        texts.append(" ".join(list(rng.choice(common, 15)) + list(rng.choice(topics[y], 3)) + list(rng.choice(topics[(y + 1) % 3], 2))))
        ys.append(y)
    return texts, np.array(ys)


MODELS = {"logreg:1": lambda: LogisticRegression(max_iter=200), "ridge:2": lambda: RidgeClassifier(random_state=0),
          "nb:3": lambda: MultinomialNB(), "knn:5": lambda: KNeighborsClassifier(5)}


def bench(model_name, make, task, seed):
    texts, y = questions(task, 380, seed)
    vec = TfidfVectorizer()
    x = vec.fit_transform(texts[:300])
    t0 = time.perf_counter()
    clf = make().fit(x, y[:300])
    load = time.perf_counter() - t0
    out = []
    for i, (t, gold) in enumerate(zip(texts[300:], y[300:])):
        t0 = time.perf_counter()
        p = int(clf.predict(vec.transform([t]))[0])
        d = time.perf_counter() - t0
        out.append(TaskResult(model_name, task, i, p, 1.0 if p == gold else 0.25 * (abs(p - gold) == 1), d,
                              psutil.Process().memory_info().rss))
    ds = [r.duration for r in out]
    q = statistics.quantiles(ds, n=20)
    print(f"[{datetime.now():%H:%M:%S}] {model_name:<9} {task:<14} score={statistics.mean(r.score for r in out):.4f} "
          f"load={load * 1e3:.1f}ms avg={statistics.mean(ds) * 1e3:.2f}ms p50={q[9] * 1e3:.2f}ms p95={q[18] * 1e3:.2f}ms "
          f"rate={len(ds) / sum(ds):.1f} q/s", flush=True)
    return out


def md_table(df):
    cols = list(df.columns)
    lines = ["| " + " | ".join(cols) + " |", "|" + "|".join(":---" if df[c].dtype == object else "---:" for c in cols) + "|"]
    for row in df.itertuples(index=False):
        lines.append("| " + " | ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row) + " |")
    return "\n".join(lines)


def main():
    wall = time.time()
    print(f"Benchmark {TS} on {platform.node()} ({platform.machine()}), pid {os.getpid()}, load {os.getloadavg()[0]:.2f}")
    results = []
    for name, make in MODELS.items():
        for k, task in enumerate(["code", "qa", "reasoning", "summarization"]):
            results += bench(name, make, task, 40 + k)
    df = pd.DataFrame([asdict(r) for r in results])
    df.to_json(os.path.join(OUT, f"benchmark_results_{TS}.json"), orient="records", indent=1)
    summary = df.groupby(["model", "task_type"]).agg(**{"Average Duration": ("duration", "mean"), "Average Memory Usage": ("memory_usage", "mean"),
                                                        "Average Score": ("score", "mean"), "Total Tasks": ("score", "size")}).reset_index()
    summary = summary.rename(columns={"model": "Model", "task_type": "Task Type"})
    best = df.groupby("model").score.mean().sort_values(ascending=False, kind="stable")
    peak = psutil.Process().memory_info().vms
    with open(os.path.join(OUT, f"benchmark_report_{TS}.md"), "w") as f:
        f.write("# Benchmark Report\n\n")
        f.write(f"**Generated:** {datetime.now().astimezone().isoformat()}  \n**Host:** {platform.node()}  \n"
                f"**Total Duration:** {time.time() - wall:.1f}s ({(time.time() - wall) / 60:.2f} min)  \n"
                f"**Virtual memory:** {peak / 2 ** 20:.1f} MB, max RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KB\n\n")
        f.write("## Summary Statistics\n\n" + md_table(summary) + "\n\n## Ranking\n\n")
        f.writelines(f"{i}. {m} ({s:.4f})\n" for i, (m, s) in enumerate(best.items(), 1))
    df[["model", "task_type", "question_id", "prediction", "score"]].to_csv(os.path.join(OUT, "predictions.csv"), index=False)
    with zipfile.ZipFile(f"export_{TS}.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for n in sorted(os.listdir(OUT)):
            z.write(os.path.join(OUT, n), n)
    with open("latest.json", "w") as f:
        json.dump({"report": f"{OUT}/benchmark_report_{TS}.md", "best": best.index[0], "score": best.iloc[0], "epoch": time.time()}, f)
    print(summary.to_string(index=False))
    print(f"Best model: {best.index[0]} with {best.iloc[0]:.4f}; report saved to {OUT}/benchmark_report_{TS}.md")


if __name__ == "__main__":
    main()
