"""Fine-tune a small bytecode-to-signature classifier and evaluate it.

Modelled on https://github.com/agorevski/A1.5_Smart_Contract_Bytecode_To_Code_Generator/issues/40
The pipeline prepares, splits and trains with fixed seeds and then reports metrics on a capped test set.
"""
import argparse
import json
import logging
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                    format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("pipeline")

OPCODES = ["PUSH1", "PUSH2", "DUP1", "SWAP1", "ADD", "SUB", "MUL", "DIV", "SLOAD",
           "SSTORE", "CALL", "DELEGATECALL", "JUMP", "JUMPI", "LOG1", "REVERT",
           "CALLER", "CALLVALUE", "SHA3", "MLOAD", "MSTORE", "RETURN"]
CLASSES = ["transfer", "approve", "mint", "burn", "withdraw", "swap"]


@dataclass
class TrainingConfig:
    seed: int = 42
    n_contracts: int = 6000
    seq_len: int = 40
    test_fraction: float = 0.25
    val_fraction: float = 0.1
    epochs: int = 12
    batch_size: int = 128
    learning_rate: float = 0.4
    weight_decay: float = 1e-4
    evaluation_sample_size: int = 400
    output_dir: str = "results"


def build_corpus(cfg):
    """Draw opcode sequences from one Markov-like profile per class."""
    rng = np.random.default_rng(cfg.seed)
    profiles = rng.dirichlet(np.full(len(OPCODES), 0.9), size=len(CLASSES))
    shared = rng.dirichlet(np.full(len(OPCODES), 3.0))
    labels = rng.integers(0, len(CLASSES), size=cfg.n_contracts)
    sequences = []
    for y in labels:
        mix = 0.3 * profiles[y] + 0.7 * shared
        sequences.append(rng.choice(len(OPCODES), size=cfg.seq_len, p=mix))
    return np.asarray(sequences), labels


def featurize(sequences):
    n = len(OPCODES)
    counts = np.zeros((len(sequences), n))
    for op in range(n):
        counts[:, op] = (sequences == op).sum(axis=1)
    pair = np.zeros((len(sequences), n))
    for a in range(n):
        pair[:, a] = ((sequences[:, :-1] == a) & (sequences[:, 1:] == (a + 1) % n)).sum(axis=1)
    feats = np.hstack([counts, pair])
    return (feats - feats.mean(axis=0)) / (feats.std(axis=0) + 1e-9)


def split(n, cfg):
    rng = np.random.default_rng(cfg.seed + 1)
    order = rng.permutation(n)
    n_test = int(n * cfg.test_fraction)
    n_val = int(n * cfg.val_fraction)
    return order[n_test + n_val:], order[n_test:n_test + n_val], order[:n_test]


class SoftmaxModel:
    def __init__(self, n_in, n_out, seed):
        rng = np.random.default_rng(seed)
        self.w = rng.normal(0, 0.01, size=(n_in, n_out))
        self.b = np.zeros(n_out)

    def probabilities(self, x):
        z = x @ self.w + self.b
        z -= z.max(axis=1, keepdims=True)
        e = np.exp(z)
        return e / e.sum(axis=1, keepdims=True)

    def step(self, x, y, cfg):
        p = self.probabilities(x)
        loss = -np.log(p[np.arange(len(y)), y] + 1e-12).mean()
        p[np.arange(len(y)), y] -= 1
        p /= len(y)
        self.w -= cfg.learning_rate * (x.T @ p + cfg.weight_decay * self.w)
        self.b -= cfg.learning_rate * p.sum(axis=0)
        return loss


class SmartContractTrainingPipeline:
    def __init__(self, cfg):
        self.cfg = cfg
        self.out = Path(cfg.output_dir)
        self.out.mkdir(exist_ok=True)
        self.history = []

    def prepare(self):
        sequences, labels = build_corpus(self.cfg)
        self.x, self.y = featurize(sequences), labels
        self.train_idx, self.val_idx, self.test_idx = split(len(labels), self.cfg)
        log.info("train=%d val=%d test=%d", len(self.train_idx), len(self.val_idx), len(self.test_idx))

    def train(self):
        cfg = self.cfg
        self.model = SoftmaxModel(self.x.shape[1], len(CLASSES), cfg.seed + 2)
        shuffler = np.random.default_rng(cfg.seed + 3)
        for epoch in range(cfg.epochs):
            start = time.perf_counter()
            order = shuffler.permutation(self.train_idx)
            losses = []
            for i in range(0, len(order), cfg.batch_size):
                b = order[i:i + cfg.batch_size]
                losses.append(self.model.step(self.x[b], self.y[b], cfg))
            val = self.model.probabilities(self.x[self.val_idx]).argmax(axis=1)
            acc = float((val == self.y[self.val_idx]).mean())
            self.history.append({"epoch": epoch, "loss": float(np.mean(losses)), "val_acc": acc})
            log.info("epoch %2d loss %.5f val_acc %.4f (%.2fs)", epoch, np.mean(losses), acc,
                     time.perf_counter() - start)

    def evaluate_model(self):
        """Score the model on at most ``evaluation_sample_size`` test functions."""
        cfg = self.cfg
        test = self.test_idx
        if len(test) > cfg.evaluation_sample_size:
            test = np.random.choice(test, cfg.evaluation_sample_size, replace=False)  # cause
            log.info("evaluating on %d of %d test functions", len(test), len(self.test_idx))
        probs = self.model.probabilities(self.x[test])
        pred, truth = probs.argmax(axis=1), self.y[test]
        per_class = {}
        for k, name in enumerate(CLASSES):
            tp = int(((pred == k) & (truth == k)).sum())
            fp = int(((pred == k) & (truth != k)).sum())
            fn = int(((pred != k) & (truth == k)).sum())
            per_class[name] = {
                "precision": round(tp / max(tp + fp, 1), 4),
                "recall": round(tp / max(tp + fn, 1), 4),
                "support": tp + fn,
            }
        nll = float(-np.log(probs[np.arange(len(truth)), truth] + 1e-12).mean())
        return {"accuracy": round(float((pred == truth).mean()), 4), "nll": round(nll, 5),
                "per_class": per_class, "n": len(test)}

    def save(self, metrics):
        (self.out / "history.json").write_text(json.dumps(self.history, indent=1))
        (self.out / "metrics.json").write_text(json.dumps(metrics, indent=1))
        (self.out / "config.json").write_text(json.dumps(asdict(self.cfg), indent=1))
        np.save(self.out / "weights.npy", self.model.w)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=TrainingConfig.epochs)
    ap.add_argument("--eval-size", type=int, default=TrainingConfig.evaluation_sample_size)
    args = ap.parse_args()
    pipe = SmartContractTrainingPipeline(
        TrainingConfig(epochs=args.epochs, evaluation_sample_size=args.eval_size))
    pipe.prepare()
    pipe.train()
    metrics = pipe.evaluate_model()
    pipe.save(metrics)
    for name, m in metrics["per_class"].items():
        print(f"{name:10s} P={m['precision']:.4f} R={m['recall']:.4f} n={m['support']}")
    print(f"accuracy={metrics['accuracy']:.4f} nll={metrics['nll']:.5f}")


if __name__ == "__main__":
    main()
