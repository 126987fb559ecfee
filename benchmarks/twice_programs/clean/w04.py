"""Small object-detection style trainer with hook based engine and an event storage,
loosely after detectron2: metrics.json, TensorBoard events, log.txt, model_final.pth."""
import datetime
import json
import logging
import os
import resource
import sys
import time
from collections import defaultdict, deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter

CFG = {
    "OUTPUT_DIR": "./output",
    "SEED": 7,
    "SOLVER": {"BASE_LR": 0.01, "MAX_ITER": 120, "STEPS": [80, 105], "WARMUP_ITERS": 15, "IMS_PER_BATCH": 8,
               "CHECKPOINT_PERIOD": 60},
    "INPUT": {"SIZE": 32, "GRID": 8},
    "TEST": {"NUM": 64, "EVAL_PERIOD": 60},
}


def setup_logger(output):
    logger = logging.getLogger("d2")
    logger.setLevel(logging.DEBUG)
    fmt = logging.Formatter("[%(asctime)s %(name)s]: %(message)s", datefmt="%m/%d %H:%M:%S")
    for h in (logging.StreamHandler(stream=sys.stdout), logging.FileHandler(os.path.join(output, "log.txt"))):
        h.setFormatter(fmt)
        logger.addHandler(h)
    return logger


class HistoryBuffer:
    def __init__(self, maxlen=1000):
        self._data = deque(maxlen=maxlen)
        self._sum = self._n = 0

    def update(self, v):
        self._data.append(v)
        self._sum += v
        self._n += 1

    def latest(self):
        return self._data[-1]

    def median(self, w):
        return float(np.median(list(self._data)[-w:]))

    def avg(self, w):
        return float(np.mean(list(self._data)[-w:]))

    def global_avg(self):
        return self._sum / self._n


class EventStorage:
    def __init__(self):
        self.iter = 0
        self.history = defaultdict(HistoryBuffer)
        self.latest = {}
        self.smooth = {}

    def put_scalar(self, name, value, smoothing_hint=True):
        value = float(value)
        self.history[name].update(value)
        self.latest[name] = value
        self.smooth[name] = smoothing_hint

    def latest_with_smoothing(self, w=20):
        return {k: (self.history[k].median(w) if self.smooth[k] else v) for k, v in self.latest.items()}


class HookBase:
    trainer = None

    def before_train(self): pass
    def after_train(self): pass
    def before_step(self): pass
    def after_step(self): pass


class IterationTimer(HookBase):
    def before_train(self):
        self._start = time.perf_counter()

    def before_step(self):
        self._t = time.perf_counter()

    def after_step(self):
        self.trainer.storage.put_scalar("time", time.perf_counter() - self._t)

    def after_train(self):
        total = time.perf_counter() - self._start
        n = self.trainer.max_iter
        self.trainer.logger.info("Overall training speed: {} iterations in {} ({:.4f} s / it)".format(
            n, str(datetime.timedelta(seconds=int(total))), total / n))


class LRScheduler(HookBase):
    def after_step(self):
        s, it = CFG["SOLVER"], self.trainer.storage.iter
        lr = s["BASE_LR"] * 0.1 ** sum(it >= m for m in s["STEPS"])
        if it < s["WARMUP_ITERS"]:
            lr *= 0.001 + 0.999 * it / s["WARMUP_ITERS"]
        self.trainer.storage.put_scalar("lr", self.trainer.optimizer.param_groups[0]["lr"], smoothing_hint=False)
        self.trainer.optimizer.param_groups[0]["lr"] = lr


class PeriodicCheckpointer(HookBase):
    def after_step(self):
        t = self.trainer
        it = t.storage.iter
        final = it + 1 == t.max_iter
        if (it + 1) % CFG["SOLVER"]["CHECKPOINT_PERIOD"] == 0 or final:
            name = "model_final.pth" if final else "model_{:07d}.pth".format(it)
            t.logger.info("Saving checkpoint to %s", os.path.join(CFG["OUTPUT_DIR"], name))
            torch.save({"model": t.model.state_dict(), "optimizer": t.optimizer.state_dict(), "iteration": it},
                       os.path.join(CFG["OUTPUT_DIR"], name))
            with open(os.path.join(CFG["OUTPUT_DIR"], "last_checkpoint"), "w") as f:
                f.write(name)


class EvalHook(HookBase):
    def after_step(self):
        t = self.trainer
        if (t.storage.iter + 1) % CFG["TEST"]["EVAL_PERIOD"] == 0:
            res = t.evaluate()
            for k, v in res.items():
                t.storage.put_scalar("bbox/" + k, v, smoothing_hint=False)


class PeriodicWriter(HookBase):
    def before_train(self):
        self.json = open(os.path.join(CFG["OUTPUT_DIR"], "metrics.json"), "a")
        self.tb = SummaryWriter(CFG["OUTPUT_DIR"])

    def after_step(self):
        st, t = self.trainer.storage, self.trainer
        if (st.iter + 1) % 20 and st.iter + 1 != t.max_iter:
            return
        eta = st.history["time"].median(1000) * (t.max_iter - st.iter - 1)
        st.put_scalar("eta_seconds", eta, smoothing_hint=False)
        mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        losses = "  ".join(f"{k}: {v.median(20):.4g}" for k, v in st.history.items() if "loss" in k)
        t.logger.info(f" eta: {datetime.timedelta(seconds=int(eta))}  iter: {st.iter}  {losses}  "
                      f"time: {st.history['time'].global_avg():.4f}  last_time: {st.history['time'].latest():.4f}  "
                      f"data_time: {st.history['data_time'].avg(20):.4f}  "
                      f"lr: {st.history['lr'].latest():.5g}  max_mem: {mem:.0f}M")
        rec = st.latest_with_smoothing()
        for k, v in rec.items():
            self.tb.add_scalar(k, v, st.iter)
        self.json.write(json.dumps(dict(rec, iteration=st.iter), sort_keys=True) + "\n")
        self.json.flush()

    def after_train(self):
        self.json.close()
        self.tb.close()


def make_batch(rng, n):
    """Images with one bright rectangle; targets: cell of its centre, box size, class (aspect)."""
    S, G = CFG["INPUT"]["SIZE"], CFG["INPUT"]["GRID"]
    img = rng.randn(n, 1, S, S).astype("float32") * 0.3
    cell, wh, cls = np.zeros(n, int), np.zeros((n, 2), "float32"), np.zeros(n, int)
    for i in range(n):
        w, h = rng.randint(5, 15), rng.randint(5, 15)
        x, y = rng.randint(0, S - w), rng.randint(0, S - h)
        img[i, 0, y:y + h, x:x + w] += 1.0 + rng.rand()
        cx, cy = x + w / 2, y + h / 2
        cell[i] = int(cy * G / S) * G + int(cx * G / S)
        wh[i], cls[i] = (w / S, h / S), int(w > h)
    return tuple(map(torch.from_numpy, (img, cell, wh, cls)))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(32, 32, 5, 1, 2), nn.ReLU(), nn.Conv2d(32, 32, 5, 1, 2), nn.ReLU())
        self.obj, self.box, self.cls = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 2, 1), nn.Conv2d(32, 2, 1)

    def forward(self, img, cell=None, wh=None, cls=None):
        f = self.backbone(img)
        obj, box, logit = self.obj(f).flatten(1), self.box(f).flatten(2), self.cls(f).flatten(2)
        if cell is None:
            c = obj.argmax(1)
            ar = torch.arange(len(c))
            return c, box[ar, :, c], logit[ar, :, c].argmax(1)
        ar = torch.arange(len(cell))
        return {"loss_obj": F.cross_entropy(obj, cell),
                "loss_box_reg": 4 * F.smooth_l1_loss(box[ar, :, cell], wh, beta=0.1),
                "loss_cls": F.cross_entropy(logit[ar, :, cell], cls)}


class Trainer:
    def __init__(self, logger):
        self.logger, self.max_iter = logger, CFG["SOLVER"]["MAX_ITER"]
        self.model = Detector()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5, momentum=0.9, weight_decay=1e-4)
        self.storage = EventStorage()
        self.rng = np.random.RandomState(CFG["SEED"])
        self.hooks = [IterationTimer(), LRScheduler(), PeriodicCheckpointer(), EvalHook(), PeriodicWriter()]
        for h in self.hooks:
            h.trainer = self
        logger.info("Model:\n%s", self.model)

    def run_step(self):
        t = time.perf_counter()
        batch = make_batch(self.rng, CFG["SOLVER"]["IMS_PER_BATCH"])
        data_time = time.perf_counter() - t
        losses = self.model(*batch)
        total = sum(losses.values())
        self.optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        self.storage.put_scalar("data_time", data_time)
        self.storage.put_scalar("total_loss", total.item())
        for k, v in losses.items():
            self.storage.put_scalar(k, v.item())

    @torch.no_grad()
    def evaluate(self):
        t0 = time.perf_counter()
        img, cell, wh, cls = make_batch(np.random.RandomState(99), CFG["TEST"]["NUM"])
        self.model.eval()
        c, w, k = self.model(img)
        self.model.train()
        dt = time.perf_counter() - t0
        n = len(c)
        self.logger.info("Total inference time: %s (%.6f s / iter per device, on 1 devices)",
                         datetime.timedelta(seconds=int(dt)), dt / n)
        res = {"AP_cell": 100 * (c == cell).float().mean().item(), "wh_l1": (w - wh).abs().mean().item(),
               "cls_acc": 100 * (k == cls).float().mean().item()}
        self.logger.info("Evaluation results for bbox:\n|  " + "  |  ".join(res) + "  |\n|  " +
                         "  |  ".join(f"{v:.3f}" for v in res.values()) + "  |")
        with open(os.path.join(CFG["OUTPUT_DIR"], "instances_results.json"), "w") as f:
            json.dump([{"image_id": i, "cell": int(c[i]), "wh": [round(float(q), 5) for q in w[i]],
                        "category_id": int(k[i])} for i in range(n)], f)
        return res

    def train(self):
        self.logger.info("Starting training from iteration 0")
        for h in self.hooks:
            h.before_train()
        for it in range(self.max_iter):
            self.storage.iter = it
            for h in self.hooks:
                h.before_step()
            self.run_step()
            for h in self.hooks:
                h.after_step()
        for h in self.hooks:
            h.after_train()


if __name__ == "__main__":
    os.makedirs(CFG["OUTPUT_DIR"], exist_ok=True)
    torch.manual_seed(CFG["SEED"])
    torch.set_num_threads(1)
    log = setup_logger(CFG["OUTPUT_DIR"])
    log.info("Environment info: python %s, torch %s, cpus %s", sys.version.split()[0], torch.__version__, os.cpu_count())
    log.info("Running with full config:\n%s", json.dumps(CFG, indent=1))
    Trainer(log).train()
