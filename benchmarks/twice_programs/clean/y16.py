"""Detector of blobs on made-up micrographs, trained and validated with the output of YOLO.

Modelled on: ultralytics/ultralytics (runs/detect/train/results.csv with a time column, args.yaml,
weights/best.pt with a date, "N epochs completed in X hours", "Speed: ..ms preprocess, ..ms inference").
"""
import csv
import platform
import resource
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import yaml
from tqdm import tqdm

ARGS = {"task": "detect", "mode": "train", "epochs": 4, "batch": 16, "imgsz": 48, "optimizer": "AdamW", "lr0": 0.01, "lrf": 0.05, "seed": 0,
        "deterministic": True, "workers": 0, "conf": 0.3, "iou": 0.5, "project": "runs/detect", "name": "train", "stride": 8}
TQDM_FORMAT = "{l_bar}{bar:10}{r_bar}"


def make(n, seed, size):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    images, boxes = [], []
    for _ in range(n):
        img = rng.normal(0.1, 0.06, (size, size))
        bs = []
        for _ in range(int(rng.integers(1, 4))):
            r = rng.uniform(3, 6)
            cx, cy = rng.uniform(r, size - r, 2)
            img += 0.8 * np.exp(-(((xx - cx) ** 2 + (yy - cy) ** 2) / (2 * (r / 2) ** 2)))
            bs.append((cx, cy, 2 * r, 2 * r))
        images.append(img.astype(np.float32))
        boxes.append(np.array(bs, np.float32))
    return torch.from_numpy(np.stack(images))[:, None], boxes


class Net(nn.Module):
    """Three strided convolutions and a head with objectness and a box for each cell."""

    def __init__(self, c=12):
        super().__init__()
        layers, cin = [], 1
        for i in range(3):
            layers += [nn.Conv2d(cin, c * 2 ** i, 3, 2, 1), nn.BatchNorm2d(c * 2 ** i), nn.SiLU()]
            cin = c * 2 ** i
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(cin, 5, 1)

    def forward(self, x):
        return self.head(self.body(x))


def targets(boxes, g, stride):
    obj, reg = torch.zeros(len(boxes), g, g), torch.zeros(len(boxes), 4, g, g)
    for i, bs in enumerate(boxes):
        for cx, cy, w, h in bs:
            a, b = int(cx // stride), int(cy // stride)
            obj[i, b, a] = 1
            reg[i, :, b, a] = torch.tensor([cx / stride - a, cy / stride - b, np.log(w / stride), np.log(h / stride)])
    return obj, reg


def losses(out, obj, reg):
    cls = nn.functional.binary_cross_entropy_with_logits(out[:, 0], obj, pos_weight=torch.tensor(4.0))
    mask = obj[:, None].expand_as(reg)
    box = (nn.functional.smooth_l1_loss(out[:, 1:], reg, reduction="none") * mask).sum() / mask.sum().clamp(min=1)
    return box, cls


def iou(a, b):
    lt = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    rb = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    inter = np.prod(np.clip(rb - lt, 0, None))
    return inter / (np.prod(a[2:]) + np.prod(b[2:]) - inter)


def decode(out, stride, conf):
    p = out[:, 0].sigmoid().numpy()
    res = []
    for i in range(len(out)):
        cells = np.argwhere(p[i] > conf)
        dets = []
        for b, a in cells:
            dx, dy, lw, lh = out[i, 1:, b, a].numpy()
            dets.append((p[i, b, a], (a + dx) * stride, (b + dy) * stride, np.exp(lw) * stride, np.exp(lh) * stride))
        dets = sorted(dets, key=lambda d: -d[0])
        keep = []
        for d in dets:
            if all(iou(np.array(d[1:]), np.array(k[1:])) < 0.45 for k in keep):
                keep.append(d)
        res.append(keep)
    return res


def average_precision(preds, boxes, thr):
    flat = sorted(((d[0], i, d[1:]) for i, ds in enumerate(preds) for d in ds), key=lambda t: -t[0])
    used = [set() for _ in boxes]
    tp = np.zeros(len(flat))
    for n, (_, i, b) in enumerate(flat):
        ious = [iou(np.array(b), t) if j not in used[i] else 0.0 for j, t in enumerate(boxes[i])]
        j = int(np.argmax(ious))
        if ious[j] >= thr:
            tp[n] = 1
            used[i].add(j)
    total = sum(map(len, boxes))
    cum = np.cumsum(tp)
    if not len(cum):
        return 0.0, 0.0, 0.0
    rec, prec = cum / total, cum / np.arange(1, len(cum) + 1)
    prec = np.maximum.accumulate(prec[::-1])[::-1]
    ap = float(np.sum(np.diff(np.concatenate([[0], rec])) * prec))
    return ap, float(cum[-1] / len(cum)), float(rec[-1])


def validate(model, images, boxes, speed):
    model.eval()
    preds, box, cls, nb = [], 0.0, 0.0, 0
    obj, reg = targets(boxes, ARGS["imgsz"] // ARGS["stride"], ARGS["stride"])
    with torch.no_grad():
        for s in range(0, len(images), 32):
            t = time.perf_counter()
            x = (images[s:s + 32] - 0.2) / 0.25
            t1 = time.perf_counter()
            out = model(x)
            t2 = time.perf_counter()
            b, c = losses(out, obj[s:s + 32], reg[s:s + 32])
            t3 = time.perf_counter()
            preds += decode(out, ARGS["stride"], ARGS["conf"])
            t4 = time.perf_counter()
            for k, d in zip(("preprocess", "inference", "loss", "postprocess"), (t1 - t, t2 - t1, t3 - t2, t4 - t3)):
                speed[k] = speed.get(k, 0.0) + d * 1000 / len(images)
            box, cls, nb = box + b.item(), cls + c.item(), nb + 1
    aps = [average_precision(preds, boxes, t) for t in np.arange(0.5, 1.0, 0.05)]
    return {"metrics/precision(B)": aps[0][1], "metrics/recall(B)": aps[0][2], "metrics/mAP50(B)": aps[0][0],
            "metrics/mAP50-95(B)": float(np.mean([a[0] for a in aps])), "val/box_loss": box / nb, "val/cls_loss": cls / nb}


def main():
    torch.manual_seed(ARGS["seed"])
    save = Path(ARGS["project"]) / ARGS["name"]
    (save / "weights").mkdir(parents=True)
    (save / "args.yaml").write_text(yaml.safe_dump({**ARGS, "save_dir": str(save.resolve())}, sort_keys=False))
    print(f"Ultralytics-like 8.3.94 Python-{platform.python_version()} torch-{torch.__version__} CPU ({platform.processor() or platform.machine()})")
    print("engine/trainer: " + ", ".join(f"{k}={v}" for k, v in ARGS.items()))
    t = time.time()
    xt, bt = make(192, 1, ARGS["imgsz"])
    xv, bv = make(48, 2, ARGS["imgsz"])
    print(f"train: {len(xt)} images, {sum(map(len, bt))} instances; val: {len(xv)} images, {sum(map(len, bv))} instances (made in {time.time() - t:.1f}s)")
    model = Net()
    n = sum(p.numel() for p in model.parameters())
    print(f"Model summary: {len(list(model.modules()))} layers, {n:,} parameters, {n:,} gradients")
    opt = torch.optim.AdamW(model.parameters(), lr=ARGS["lr0"])
    print(f"Logging results to {save}\nStarting training for {ARGS['epochs']} epochs...")
    t0, best, fields = time.time(), -1.0, None
    g = ARGS["imgsz"] // ARGS["stride"]
    for epoch in range(1, ARGS["epochs"] + 1):
        model.train()
        lr = ARGS["lr0"] * ((1 - (epoch - 1) / ARGS["epochs"]) * (1 - ARGS["lrf"]) + ARGS["lrf"])
        for group in opt.param_groups:
            group["lr"] = lr
        order = torch.randperm(len(xt), generator=torch.Generator().manual_seed(epoch)).split(ARGS["batch"])
        print(f"\n{'Epoch':>10}{'RSS_mem':>10}{'box_loss':>10}{'cls_loss':>10}{'Instances':>11}{'Size':>7}")
        mean = torch.zeros(2)
        bar = tqdm(order, bar_format=TQDM_FORMAT, file=sys.stdout)
        for i, idx in enumerate(bar):
            bs = [bt[j] for j in idx]
            box, cls = losses(model((xt[idx] - 0.2) / 0.25), *targets(bs, g, ARGS["stride"]))
            opt.zero_grad()
            (2.0 * box + cls).backward()
            opt.step()
            mean = (mean * i + torch.stack([box, cls]).detach()) / (i + 1)
            mem = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2 ** 20:.3g}G"
            bar.set_description(f"{epoch:>8}/{ARGS['epochs']}{mem:>10}{mean[0]:>10.4g}{mean[1]:>10.4g}{sum(map(len, bs)):>11}{ARGS['imgsz']:>7}")
        speed = {}
        m = validate(model, xv, bv, speed)
        print(f"{'Class':>22}{'Images':>11}{'Instances':>11}{'Box(P':>11}{'R':>11}{'mAP50':>11}{'mAP50-95)':>11}")
        print(f"{'all':>22}{len(xv):>11}{sum(map(len, bv)):>11}" + "".join(f"{v:>11.3g}" for v in list(m.values())[:4]))
        row = {"epoch": epoch, "time": f"{time.time() - t0:.6g}", "train/box_loss": f"{mean[0]:.5g}", "train/cls_loss": f"{mean[1]:.5g}",
               **{k: f"{v:.5g}" for k, v in m.items()}, "lr/pg0": f"{lr:.6g}"}
        with open(save / "results.csv", "a", newline="") as f:
            w = csv.DictWriter(f, fieldnames=list(row))
            if fields is None:
                w.writeheader()
                fields = list(row)
            w.writerow(row)
        fitness = 0.1 * m["metrics/mAP50(B)"] + 0.9 * m["metrics/mAP50-95(B)"]
        ckpt = {"epoch": epoch, "best_fitness": max(best, fitness), "model": model.state_dict(), "train_args": ARGS, "train_metrics": m,
                "date": datetime.now().isoformat(), "version": "8.3.94"}
        torch.save(ckpt, save / "weights/last.pt")
        if fitness > best:
            best = fitness
            torch.save(ckpt, save / "weights/best.pt")
    print(f"\n{ARGS['epochs']} epochs completed in {(time.time() - t0) / 3600:.3f} hours.")
    for k in ("last", "best"):
        print(f"Optimizer stripped from {save / 'weights' / (k + '.pt')}, {(save / 'weights' / (k + '.pt')).stat().st_size / 1e6:.1f}MB")
    model.load_state_dict(torch.load(save / "weights/best.pt", weights_only=False)["model"])
    speed = {}
    m = validate(model, xv, bv, speed)
    print(f"Validating {save / 'weights/best.pt'}...")
    print(f"{'all':>22}{len(xv):>11}{sum(map(len, bv)):>11}" + "".join(f"{v:>11.4g}" for v in list(m.values())[:4]))
    print("Speed: " + ", ".join(f"{v:.1f}ms {k}" for k, v in speed.items()) + " per image")
    print(f"Results saved to {save}")


if __name__ == "__main__":
    main()
