"""Simulate future timelines of the test patients with the trained model."""
import argparse
import os
import time

import numpy as np
import torch

from model import TimelineModel
from vocab import CONTEXT, INDEX

STOP = (INDEX["END"], INDEX["DEATH"])


def load_model(path):
    checkpoint = torch.load(path, weights_only=True)
    model = TimelineModel(**checkpoint["config"])
    model.load_state_dict(checkpoint["state"])  # cause
    return model


@torch.inference_mode()
def simulate(model, prompt, n_reps, temperature, generator):
    """Roll out n_reps futures for each prompt; PAD after a stop token."""
    ids = prompt.repeat_interleave(n_reps, dim=0)
    alive = torch.ones(len(ids), dtype=torch.bool)
    while ids.shape[1] < CONTEXT and bool(alive.any()):
        logits = model(ids)[:, -1] / temperature
        logits[:, [INDEX["PAD"], INDEX["START"]]] = float("-inf")
        new = torch.multinomial(torch.softmax(logits, 1), 1, generator=generator)[:, 0]
        new = torch.where(alive, new, torch.full_like(new, INDEX["PAD"]))
        ids = torch.cat([ids, new[:, None]], dim=1)
        for token in STOP:
            alive &= new != token
    out = torch.full((len(ids), CONTEXT), INDEX["PAD"])
    out[:, :ids.shape[1]] = ids
    return out.view(len(prompt), n_reps, CONTEXT)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--reps", type=int, default=10)
    ap.add_argument("--prompt", type=int, default=7)
    args = ap.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(args.seed)

    test = torch.from_numpy(np.load(os.path.join(args.data, "test.npy")))
    model = load_model(args.model)
    start, parts = time.perf_counter(), []
    for chunk in test[:, :args.prompt].split(35):
        parts.append(simulate(model, chunk, args.reps, 0.9, generator).numpy())
    futures = np.concatenate(parts)
    np.savez(args.out, futures=futures, prompt=args.prompt)
    print(f"{futures.shape[0]} patients x {futures.shape[1]} futures "
          f"in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
