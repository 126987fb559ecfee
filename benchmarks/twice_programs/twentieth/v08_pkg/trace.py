"""Synthetic multi-turn chat traces."""
from dataclasses import dataclass
from typing import Optional

import numpy as np

VOCAB = 32000


@dataclass(frozen=True)
class TraceConfig:
    n_users: int
    n_turns: int
    n_system_prompts: int
    seed: int
    system_length: int = 240
    lora_share: float = 0.15


@dataclass(frozen=True)
class Request:
    request_id: int
    user: int
    turn: int
    tokens: tuple
    lora: Optional[int] = None
    salt: Optional[int] = None

    @property
    def extra_keys(self):
        """What besides the tokens makes a block different."""
        if self.lora is None and self.salt is None:
            return None  # cause
        return (self.lora, self.salt or 0)


def make_trace(config):
    """Interleaved turns of many users; each turn repeats the whole conversation."""
    rng = np.random.default_rng(config.seed)
    systems = [rng.integers(0, VOCAB, config.system_length) for _ in range(config.n_system_prompts)]
    popularity = rng.dirichlet(np.full(config.n_system_prompts, 0.7))
    history, lora = [], []
    for _ in range(config.n_users):
        history.append(systems[rng.choice(config.n_system_prompts, p=popularity)].tolist())
        lora.append(int(rng.integers(0, 4)) if rng.random() < config.lora_share else None)
    # every user has the same number of turns but his own pace
    events = []
    for user in range(config.n_users):
        at = np.cumsum(rng.exponential(rng.uniform(0.5, 3.0), size=config.n_turns)) + rng.uniform(0, 4)
        events += [(float(t), user, turn) for turn, t in enumerate(at)]
    events.sort()
    trace = []
    for request_id, (_, user, turn) in enumerate(events):
        history[user] += rng.integers(0, VOCAB, int(rng.integers(12, 60))).tolist()
        trace.append(Request(request_id, user, turn, tuple(history[user]), lora[user]))
        history[user] += rng.integers(0, VOCAB, int(rng.integers(20, 120))).tolist()
    return trace
