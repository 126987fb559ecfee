"""Policy-gradient training on arithmetic problems drawn from a difficulty-aware buffer.

Modelled on https://github.com/PrimeIntellect-ai/prime-rl/issues/1153
Seeds were set for orchestrator and inference, yet each run drew other problems from the buffer.
"""
import argparse
import json
import logging
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

sys.path.insert(0, str(Path(__file__).resolve().parent))
from p21_rl.buffer import DifficultyBuffer  # noqa: E402
from p21_rl.problems import decode, encode, make_problems  # noqa: E402

log = logging.getLogger("orchestrator")


@dataclass
class Config:
    n_problems: int = 200
    modulus: int = 7
    steps: int = 60
    problems_per_step: int = 16
    rollouts: int = 8
    hidden: int = 32
    lr: float = 1e-2
    entropy: float = 0.01
    easy_threshold: float = 0.9
    hard_threshold: float = 0.1
    seed: int = 42
    sampling_seed: int = 42


class Policy(nn.Module):
    def __init__(self, n_in, hidden, n_out):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, n_out)
        )

    def forward(self, x):
        return Categorical(logits=self.net(x))


class Inference:
    """Samples completions with a generator of its own."""

    def __init__(self, policy, seed):
        self.policy = policy
        self.gen = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def sample(self, x, n):
        probs = self.policy(x).probs
        return torch.multinomial(probs, n, replacement=True, generator=self.gen)


def rewards_for(problems, completions):
    out = torch.zeros(completions.shape)
    for i, prob in enumerate(problems):
        for j, c in enumerate(completions[i].tolist()):
            out[i, j] = 1.0 if decode(c) == prob.answer else 0.0
    return out


def update(policy, opt, x, completions, rewards, cfg):
    baseline = rewards.mean(dim=1, keepdim=True)
    adv = rewards - baseline
    dist = policy(x)
    logp = torch.stack([dist.log_prob(completions[:, j]) for j in range(completions.shape[1])], 1)
    loss = -(adv * logp).mean() - cfg.entropy * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    opt.step()
    return loss.item(), float(norm)


@torch.no_grad()
def evaluate(policy, problems, cfg):
    x = torch.stack([encode(p, cfg.modulus) for p in problems])
    best = policy(x).probs.argmax(1).tolist()
    return sum(decode(b) == p.answer for b, p in zip(best, problems)) / len(problems)


def train(cfg):
    problems = make_problems(cfg.n_problems, cfg.modulus, cfg.seed)
    held = problems[-40:]
    buffer = DifficultyBuffer(problems[:-40], cfg.easy_threshold, cfg.hard_threshold)
    policy = Policy(2 * cfg.modulus + 2, cfg.hidden, cfg.modulus)
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    inference = Inference(policy, cfg.sampling_seed)
    rows = []
    for step in range(cfg.steps):
        t0 = time.time()
        batch = buffer.sample_problems(cfg.problems_per_step)
        x = torch.stack([encode(p, cfg.modulus) for p in batch])
        completions = inference.sample(x, cfg.rollouts)
        rewards = rewards_for(batch, completions)
        loss, norm = update(policy, opt, x, completions, rewards, cfg)
        buffer.update(batch, rewards.mean(1).tolist())
        rows.append({
            "step": step,
            "reward": round(float(rewards.mean()), 5),
            "loss": round(loss, 6),
            "grad_norm": round(norm, 6),
            "first": batch[0].text,
            **buffer.counts(),
        })
        if step % 10 == 9:
            log.info("step %d (%.1f ms)", step, 1000 * (time.time() - t0))
            r = rows[-1]
            print(f"step {step:3d} reward {r['reward']:.4f} loss {r['loss']:+.5f} "
                  f"easy {r['easy']} normal {r['normal']} hard {r['hard']} | {r['first']}")
    return policy, rows, held


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=Config.steps)
    ap.add_argument("--seed", type=int, default=Config.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    cfg = Config(steps=args.steps, seed=args.seed)
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    policy, rows, held = train(cfg)
    acc = evaluate(policy, held, cfg)
    print(f"held-out accuracy {acc:.4f}")
    Path("metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    Path("summary.json").write_text(json.dumps({"config": asdict(cfg), "accuracy": acc}))


if __name__ == "__main__":
    main()
