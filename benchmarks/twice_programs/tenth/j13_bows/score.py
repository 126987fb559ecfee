"""Scores of the true and the perturbed captions of the test scenes."""
import argparse
import csv
import json

import numpy as np
import torch

from model import build


@torch.no_grad()
def matching_scores(net, image, words, batch_size=64):
    out = []
    for s in range(0, len(image), batch_size):
        out.append(net(image[s:s + batch_size], words[s:s + batch_size]))  # cause
    return torch.cat(out).numpy()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--task", choices=["relation", "attribution"], required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    with open(args.config) as fh:
        cfg = json.load(fh)
    torch.set_num_threads(1)

    d = np.load(f"{args.data}/test.npz")
    net = build(cfg)
    net.load_state_dict(torch.load(args.checkpoint))
    image = torch.from_numpy(d["image"])
    true = matching_scores(net, image, torch.from_numpy(d["caption"]))
    false = matching_scores(net, image, torch.from_numpy(d[args.task]))
    with open(args.out, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["scene", "true", "false"])
        for i, (a, b) in enumerate(zip(true, false)):
            w.writerow([i, f"{a:.6f}", f"{b:.6f}"])
    print(f"{args.task}: {len(true)} scenes, accuracy {np.mean(true > false):.4f}, "
          f"mean margin {np.mean(true - false):.5f}")


if __name__ == "__main__":
    main()
