"""Style of facebookresearch/torchbeast (torchbeast/core/file_writer.py, monobeast.py). Differs in each run: xpid made of
pid and unix time, _time column of logs.csv, meta.json dates, host and pids, SPS, timings report of learner and actors."""
import collections
import csv
import datetime
import json
import logging
import os
import pprint
import socket
import time
import timeit

import numpy as np
import torch
import torch.multiprocessing as mp
from torch import nn
import torch.nn.functional as F

logging.basicConfig(format="[%(levelname)s:%(process)d %(module)s:%(lineno)d %(asctime)s] %(message)s", level=0)
for noisy in ("torch", "matplotlib", "filelock"):
    logging.getLogger(noisy).setLevel(logging.WARNING)
T, B, ACTORS = 20, 8, 4


class Timings:
    """Not thread-safe; running mean and variance of named parts."""

    def __init__(self):
        self._means, self._vars, self._n = collections.defaultdict(float), collections.defaultdict(float), collections.Counter()
        self.last_time = timeit.default_timer()

    def time(self, name):
        now = timeit.default_timer()
        x = now - self.last_time
        self.last_time = now
        n = self._n[name]
        mean = self._means[name] + (x - self._means[name]) / (n + 1)
        self._vars[name] = (n * self._vars[name] + n * (self._means[name] - mean) ** 2 + (x - mean) ** 2) / (n + 1)
        self._means[name] = mean
        self._n[name] += 1

    def summary(self, prefix=""):
        total = sum(self._means.values())
        s = prefix
        for k in sorted(self._means, key=self._means.get, reverse=True):
            s += "\n    %s: %.6fms +- %.6fms (%.2f%%) " % (k, 1000 * self._means[k], 1000 * self._vars[k] ** 0.5,
                                                          100 * self._means[k] / total)
        return s + "\nTotal: %.6fms" % (1000 * total)


class FileWriter:
    def __init__(self, rootdir="logs/torchbeast"):
        self.xpid = "torchbeast-{}-{}".format(os.getpid(), time.strftime("%Y%m%d-%H%M%S"))
        self.basepath = os.path.join(rootdir, self.xpid)
        os.makedirs(self.basepath)
        os.symlink(self.xpid, os.path.join(rootdir, "latest"))
        logging.info("Creating log directory: %s", os.path.abspath(self.basepath))
        self.metadata = dict(date_start=datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f"), date_end=None,
                             successful=False, host=socket.gethostname(), xpid=self.xpid, cwd=os.getcwd(),
                             args=dict(unroll_length=T, batch_size=B, num_actors=ACTORS))
        self._save()
        self._f = open(os.path.join(self.basepath, "logs.csv"), "w")
        self._w, self._tick = None, 0

    def _save(self):
        with open(os.path.join(self.basepath, "meta.json"), "w") as f:
            json.dump(self.metadata, f, indent=4, sort_keys=True)

    def log(self, d):
        row = dict(_tick=self._tick, _time=time.time(), **d)
        self._tick += 1
        if self._w is None:
            self._w = csv.DictWriter(self._f, fieldnames=list(row))
            self._w.writeheader()
        self._w.writerow(row)

    def close(self):
        self.metadata.update(date_end=datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f"), successful=True)
        self._save()
        self._f.close()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.pi, self.v = nn.Linear(64, 3), nn.Linear(64, 1)

    def forward(self, x):
        h = self.core(x)
        return self.pi(h), self.v(h).squeeze(-1)


def act(i, jobs, out):
    """One actor; it gets a state dict and returns its unroll."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(1000 + i)
    gen = torch.Generator().manual_seed(77 + i)
    net, timings = Net(), Timings()
    logging.info("Actor %i started (pid %d).", i, os.getpid())
    while True:
        w = jobs.get()
        if w is None:
            break
        net.load_state_dict({k: torch.from_numpy(v) for k, v in w.items()})
        obs = torch.from_numpy(rng.standard_normal((T, B, 6)).astype(np.float32))
        timings.time("env")
        with torch.no_grad():
            p = F.softmax(net(obs)[0], -1)
            a = torch.multinomial(p.view(-1, 3), 1, generator=gen).view(T, B)
        timings.time("model")
        r = (a == (obs[..., 0] > 0).long() + (obs[..., 1] > 1).long()).float()
        out.put((obs.numpy(), a.numpy(), r.numpy()))
        timings.time("write")
    if i == 0:
        logging.info("Actor %i: %s", i, timings.summary())


def main():
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    plog = FileWriter()
    ctx = mp.get_context("fork")
    jobs, outs = [ctx.SimpleQueue() for _ in range(ACTORS)], [ctx.SimpleQueue() for _ in range(ACTORS)]
    procs = [ctx.Process(target=act, args=(i, jobs[i], outs[i])) for i in range(ACTORS)]
    for p in procs:
        p.start()
    net = Net()
    opt = torch.optim.RMSprop(net.parameters(), lr=2e-3, eps=0.01, alpha=0.99)
    timings, frames, t_last, f_last = Timings(), 0, timeit.default_timer(), 0
    stats = {}
    for step in range(120):
        w = {k: v.numpy().copy() for k, v in net.state_dict().items()}
        for q in jobs:
            q.put(w)
        batch = [q.get() for q in outs]
        timings.time("dequeue")
        obs, a, r = (torch.from_numpy(np.concatenate([b[k] for b in batch], 1)) for k in range(3))
        logits, v = net(obs)
        adv = r - v
        lp = F.cross_entropy(logits.view(-1, 3), a.view(-1), reduction="none").view_as(r)
        pg, base = (lp * adv.detach()).mean(), 0.5 * adv.pow(2).mean()
        ent = (F.softmax(logits, -1) * F.log_softmax(logits, -1)).sum(-1).mean()
        loss = pg + base + 0.001 * ent
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 40.0)
        opt.step()
        timings.time("learn")
        frames += r.numel()
        stats = dict(step=frames, mean_episode_return=r.mean().item(), total_loss=loss.item(), pg_loss=pg.item(),
                     baseline_loss=base.item(), entropy_loss=ent.item())
        plog.log(stats)
        if (step + 1) % 24 == 0:
            now = timeit.default_timer()
            logging.info("Steps %i @ %.1f SPS. Loss %f. Stats:\n%s", frames, (frames - f_last) / (now - t_last),
                         stats["total_loss"], pprint.pformat(stats))
            t_last, f_last = now, frames
    for q in jobs:
        q.put(None)
    for p in procs:
        p.join()
    logging.info("Learner: %s", timings.summary())
    path = os.path.join(plog.basepath, "model.tar")
    torch.save({"model_state_dict": net.state_dict(), "optimizer_state_dict": opt.state_dict(), "stats": stats,
                "flags": {"xpid": plog.xpid, "savedir": os.path.abspath("logs")}, "saved_at": time.time()}, path)
    logging.info("Saving checkpoint to %s", path)
    plog.close()
    print(f"Learning finished after {frames} frames, final return {stats['mean_episode_return']:.4f}.")


if __name__ == "__main__":
    main()
