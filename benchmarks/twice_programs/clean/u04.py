"""Run small question-answer evals against a toy completion function.

Modelled on: openai/evals (evals/record.py LocalRecorder, evals/cli/oaieval.py, evals/eval.py):
<run_id>_<completion>_<eval>.jsonl with {"spec": {... created_at, run_id}}, events with run_id,
event_id, created_at, then {"final_report": ..}; a thread pool, a tqdm bar and INFO lines on stderr.
"""
import dataclasses
import datetime
import getpass
import json
import logging
import os
import random
import string
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tqdm import tqdm

logging.basicConfig(format="[%(asctime)s] [%(filename)s:%(lineno)d] %(message)s", level=logging.INFO)
logger = logging.getLogger("oaieval")


@dataclasses.dataclass
class RunSpec:
    completion_fns: list
    eval_name: str
    split: str
    run_config: dict
    created_by: str
    run_id: str = None
    created_at: str = None

    def __post_init__(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        salt = "".join(random.SystemRandom().choices(string.ascii_uppercase + string.digits, k=8))
        self.run_id = now.strftime("%y%m%d%H%M%S") + salt
        self.created_at = str(now)


class LocalRecorder:
    def __init__(self, path, spec):
        self.path, self.spec, self.events = path, spec, []
        with open(path, "w") as f:
            f.write(json.dumps({"spec": dataclasses.asdict(spec)}) + "\n")

    def record(self, type_, data, sample_id):
        self.events.append(dict(run_id=self.spec.run_id, event_id=len(self.events), sample_id=sample_id, type=type_,
                                data=data, created_by=self.spec.created_by,
                                created_at=str(datetime.datetime.now(datetime.timezone.utc))))

    def finish(self, report):
        t = time.time()
        with open(self.path, "a") as f:
            f.writelines(json.dumps(e) + "\n" for e in self.events)
            f.write(json.dumps({"final_report": report}) + "\n")
        logger.info("Final report: %s. Logged to %s", report, self.path)
        logger.info("Logged %d rows of events to %s: insert_time=%.3fms", len(self.events), self.path,
                    1000 * (time.time() - t))


class ToyCompletion:
    """Answers sums; the larger the numbers the more it errs. The answer hangs on the prompt only."""

    name = "toy-arith-1"

    def __call__(self, prompt):
        started = time.perf_counter()
        a, op, b = prompt.split()[2:5]
        a, b = int(a), int(b.rstrip("?"))
        truth = a + b if op == "+" else a * b
        rng = random.Random(prompt)
        if rng.random() < min(0.6, (len(str(a)) + len(str(b))) / 15):
            truth += rng.choice([-10, -1, 1, 10])
        work = np.linalg.norm(np.random.default_rng(abs(truth) % 2**31).standard_normal((200, 200)))
        text = f"The answer is {truth}."
        return text, {"latency_ms": 1000 * (time.perf_counter() - started)}, round(-float(work) / 100, 6)


def make_samples(op, n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        a, b = rng.randrange(10 ** rng.randint(1, 5)), rng.randrange(10 ** rng.randint(1, 4))
        ideal = a + b if op == "+" else a * b
        out.append({"input": f"What is {a} {op} {b}?", "ideal": str(ideal)})
    return out


def eval_sample(args):
    i, sample, fn, name = args
    sampled, usage, logp = fn(sample["input"])
    picked = sampled.removeprefix("The answer is ").rstrip(".")
    return dict(sample_id=f"{name}.test.{i}", prompt=sample["input"], sampled=sampled, usage=usage, logp=logp,
                correct=picked == sample["ideal"], expected=sample["ideal"], picked=picked)


def bootstrap_std(correct, seed):
    rng = random.Random(seed)
    vals = [sum(rng.sample(correct, len(correct) // 2)) / (len(correct) // 2) for _ in range(1000)]
    return float(np.std(vals))


def run(name, op, n, seed, log_dir, threads):
    spec = RunSpec([ToyCompletion.name], name, "test", {"seed": seed, "max_samples": n}, getpass.getuser())
    path = os.path.join(log_dir, f"{spec.run_id}_{ToyCompletion.name}_{name}.jsonl")
    rec = LocalRecorder(path, spec)
    logger.info("Run started: %s", spec.run_id)
    samples = make_samples(op, n, seed)
    order = list(range(n))
    random.Random(seed).shuffle(order)
    work = [(i, samples[i], ToyCompletion(), name) for i in order]
    logger.info("Evaluating %d samples", n)
    with ThreadPoolExecutor(threads) as pool:
        logger.info("Running in threaded mode with %d threads!", threads)
        results = list(tqdm(pool.map(eval_sample, work), total=n, desc=name))
    for r in sorted(results, key=lambda r: int(r["sample_id"].rsplit(".", 1)[1])):
        rec.record("sampling", {"prompt": r["prompt"], "sampled": r["sampled"], "usage": r["usage"]}, r["sample_id"])
        rec.record("cond_logp", {"logp": r["logp"]}, r["sample_id"])
        rec.record("match", {k: r[k] for k in ("correct", "expected", "picked")}, r["sample_id"])
    correct = [e["data"]["correct"] for e in rec.events if e["type"] == "match"]
    report = {"accuracy": sum(correct) / n, "boostrap_std": bootstrap_std(correct, seed)}
    rec.finish(report)
    return spec, report, path


def main():
    log_dir = tempfile.mkdtemp(prefix="evallogs_", dir=".")
    summary = []
    for name, op, n, seed in [("add.dev.v0", "+", 240, 20220722), ("mul.dev.v0", "*", 180, 20220723)]:
        spec, report, path = run(name, op, n, seed, log_dir, threads=4)
        logger.info("Final report:")
        for key, value in report.items():
            logger.info("%s: %s", key, value)
        summary.append({"eval": name, "run_id": spec.run_id, "record_path": path, **report})
        print(f"{name:12s} accuracy {report['accuracy']:.4f} +- {report['boostrap_std']:.4f}   run {spec.run_id}")
    with open("summary.json", "w") as f:
        json.dump({"generated": datetime.datetime.now().isoformat(), "runs": summary}, f, indent=2)


if __name__ == "__main__":
    main()
