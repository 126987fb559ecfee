"""Fine-grained part classification: evaluation of a released checkpoint.

A small attention-to-parts network scores windows of an image, crops the
best ones and classifies global, part and concatenated features. This script
builds the released weights and the benchmark images, runs the evaluation
and writes per-image predictions and a metrics file.

Modelled on: https://github.com/yangze0930/NTS-Net/issues/14
"""
import csv
import json
import time
from dataclasses import dataclass, asdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

NUM_CLASSES = 12
PROPOSAL_NUM = 4
CAT_NUM = 3
IMAGE = 48
PART = 16


@dataclass
class EvalConfig:
    batch_size: int = 16
    num_images: int = 640
    weight_seed: int = 77
    data_seed: int = 1234
    out_csv: str = "predictions.csv"
    out_json: str = "metrics.json"


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = (nn.Conv2d(cin, cout, 1, stride, bias=False)
                      if stride != 1 or cin != cout else nn.Identity())

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.short(x))


class Backbone(nn.Module):
    """Returns logits, the feature map and the pooled feature."""

    def __init__(self, num_classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.layer1 = BasicBlock(16, 24, 2)
        self.layer2 = BasicBlock(24, 40, 2)
        self.layer3 = BasicBlock(40, 64, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        feature1 = x
        x = self.avgpool(x)
        x = x.view(x.size(0), -1)
        x = nn.Dropout(p=0.5)(x)  # cause
        feature2 = x
        x = self.fc(x)
        return x, feature1, feature2


class ProposalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Conv2d(64, 32, 3, 1, 1)
        self.down2 = nn.Conv2d(32, 32, 3, 2, 1)
        self.tidy1 = nn.Conv2d(32, 2, 1)
        self.tidy2 = nn.Conv2d(32, 2, 1)

    def forward(self, x):
        d1 = F.relu(self.down1(x))
        d2 = F.relu(self.down2(d1))
        b = x.size(0)
        return torch.cat([self.tidy1(d1).view(b, -1),
                          self.tidy2(d2).view(b, -1)], dim=1)


def make_anchors():
    boxes = []
    for cells, size in ((6, 12), (6, 18), (3, 20), (3, 28)):
        step = IMAGE / cells
        for iy in range(cells):
            for ix in range(cells):
                cy, cx = (iy + 0.5) * step, (ix + 0.5) * step
                y0 = int(np.clip(cy - size / 2, 0, IMAGE - size))
                x0 = int(np.clip(cx - size / 2, 0, IMAGE - size))
                boxes.append((y0, x0, y0 + size, x0 + size))
    return np.array(boxes)


def hard_nms(scores, boxes, topn, iou_thresh=0.25):
    order = np.argsort(-scores, kind="stable")
    keep = []
    for idx in order:
        y0, x0, y1, x1 = boxes[idx]
        ok = True
        for k in keep:
            a0, b0, a1, b1 = boxes[k]
            ih = max(0, min(y1, a1) - max(y0, a0))
            iw = max(0, min(x1, b1) - max(x0, b0))
            inter = ih * iw
            union = (y1 - y0) * (x1 - x0) + (a1 - a0) * (b1 - b0) - inter
            if inter / union > iou_thresh:
                ok = False
                break
        if ok:
            keep.append(idx)
            if len(keep) == topn:
                break
    return keep


class AttentionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.pretrained_model = Backbone(NUM_CLASSES)
        self.proposal_net = ProposalNet()
        self.concat_net = nn.Linear(64 * (CAT_NUM + 1), NUM_CLASSES)
        self.partcls_net = nn.Linear(64, NUM_CLASSES)
        self.anchors = make_anchors()

    def forward(self, x):
        b = x.size(0)
        raw_logits, rpn_feature, feature = self.pretrained_model(x)
        scores = self.proposal_net(rpn_feature.detach()).numpy()
        parts = torch.zeros(b, PROPOSAL_NUM, 3, PART, PART)
        kept = []
        for i in range(b):
            top = hard_nms(scores[i], self.anchors, PROPOSAL_NUM)
            kept.append(top)
            for j, k in enumerate(top):
                y0, x0, y1, x1 = self.anchors[k]
                parts[i, j] = F.interpolate(
                    x[i:i + 1, :, y0:y1, x0:x1], size=(PART, PART),
                    mode="bilinear", align_corners=True)[0]
        flat = parts.view(-1, 3, PART, PART)
        _, _, part_features = self.pretrained_model(flat)
        part_feature = part_features.view(b, PROPOSAL_NUM, -1)[:, :CAT_NUM]
        concat = torch.cat([part_feature.reshape(b, -1), feature], dim=1)
        concat_logits = self.concat_net(concat)
        part_logits = self.partcls_net(part_features).view(b, PROPOSAL_NUM, -1)
        return raw_logits, concat_logits, part_logits, kept


def load_checkpoint(model, seed):
    """The released weights (regenerated here, the download is 100 MB)."""
    rng = np.random.default_rng(seed)
    state = {}
    for name, t in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state[name] = t
        elif name.endswith("running_var") or (t.dim() == 1 and "bn" in name
                                              and name.endswith("weight")):
            state[name] = torch.ones_like(t)
        elif t.dim() == 1:
            state[name] = torch.from_numpy(
                rng.normal(0, 0.02, t.shape)).float()
        else:
            fan = int(np.prod(t.shape[1:]))
            state[name] = torch.from_numpy(
                rng.normal(0, np.sqrt(2.0 / fan), t.shape)).float()
    model.load_state_dict(state)


def make_images(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, NUM_CLASSES, n)
    yy, xx = np.mgrid[0:IMAGE, 0:IMAGE] / IMAGE
    images = np.empty((n, 3, IMAGE, IMAGE), dtype=np.float32)
    for i, lab in enumerate(labels):
        freq = 2 + lab % 4
        angle = (lab // 4) * np.pi / 3
        wave = np.sin(2 * np.pi * freq * (xx * np.cos(angle) + yy * np.sin(angle))
                      + rng.uniform(0, 2 * np.pi))
        cy, cx = rng.uniform(0.3, 0.7, 2)
        blob = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 0.05)
        for c in range(3):
            images[i, c] = wave * blob * (1 + 0.2 * c)
        images[i] += rng.normal(0, 0.1, images[i].shape)
    return torch.from_numpy(images), torch.from_numpy(labels)


@torch.no_grad()
def evaluate(model, images, labels, cfg):
    model.eval()
    rows, loss_sum, hits, raw_hits = [], 0.0, 0, 0
    for start in range(0, len(images), cfg.batch_size):
        x = images[start:start + cfg.batch_size]
        y = labels[start:start + cfg.batch_size]
        raw, concat, part, kept = model(x)
        loss_sum += F.cross_entropy(concat, y, reduction="sum").item()
        pred = concat.argmax(1)
        hits += int((pred == y).sum())
        raw_hits += int((raw.argmax(1) == y).sum())
        conf = concat.softmax(1).max(1).values
        for k in range(len(x)):
            rows.append([start + k, int(y[k]), int(pred[k]),
                         f"{conf[k].item():.6f}", " ".join(map(str, kept[k]))])
    n = len(images)
    return rows, {"test_loss": loss_sum / n, "test_acc": hits / n,
                  "raw_acc": raw_hits / n, "n": n}


def main():
    cfg = EvalConfig()
    t0 = time.time()
    model = AttentionNet()
    load_checkpoint(model, cfg.weight_seed)
    images, labels = make_images(cfg.num_images, cfg.data_seed)
    print(f"[eval] {len(images)} images, "
          f"{sum(p.numel() for p in model.parameters())} parameters")
    rows, metrics = evaluate(model, images, labels, cfg)
    with open(cfg.out_csv, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["image", "label", "pred", "confidence", "parts"])
        w.writerows(rows)
    with open(cfg.out_json, "w") as fh:
        json.dump({"config": asdict(cfg), **metrics}, fh, indent=1)
    print(f"test set loss: {metrics['test_loss']:.5f}")
    print(f"test set acc: {metrics['test_acc']:.4f} raw {metrics['raw_acc']:.4f}")
    print(f"[eval] took {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
