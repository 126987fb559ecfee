"""A project after the lightning-hydra template: a composed config, its dated output folder, a timed task, a results file, a retry, tags."""

import logging
import os
import sys
import time
from functools import wraps
from pathlib import Path

import hydra
import numpy as np
import torch
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from torch import nn

log = logging.getLogger(__name__)
ConfigStore.instance().store(
    name="train",
    node={
        "task_name": "train",
        "seed": 12,
        "tags": ["dev", "${now:%Y-%m-%d}"],
        "run_id": "${now:%H-%M-%S}",
        "model": {"width": 8, "lr": 0.03},
        "trainer": {"epochs": 3},
        "hydra": {"run": {"dir": "outputs/${task_name}/${now:%Y-%m-%d}/${now:%H-%M-%S}"}},
    },
)


def task_wrapper(task):
    @wraps(task)
    def wrap(cfg):
        start = time.time()
        try:
            metrics = task(cfg)
        finally:
            path = Path(HydraConfig.get().runtime.output_dir, "exec_time.log")
            content = f"'{cfg.task_name}' execution time: {time.time() - start} (s)"
            path.write_text(content)
            log.info(f"Output dir: {path.parent}")
        return metrics

    return wrap


class Data:
    def __init__(self, seed):
        g = np.random.default_rng(seed)
        self.x = torch.tensor(g.normal(size=(200, 5)), dtype=torch.float32)
        self.y = (self.x[:, :2].prod(1) > 0).long()


def train_epoch(model, opt, data):
    total = 0.0
    for i in torch.randperm(160).split(20):
        loss = nn.functional.cross_entropy(model(data.x[i]), data.y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(i)
    return total / 160


@task_wrapper
def train(cfg):
    torch.manual_seed(cfg.seed)
    data = Data(cfg.seed)
    model = nn.Sequential(nn.Linear(5, cfg.model.width), nn.ReLU(), nn.Linear(cfg.model.width, 2))
    opt = torch.optim.AdamW(model.parameters(), cfg.model.lr)
    out = Path(HydraConfig.get().runtime.output_dir)
    metrics = {}
    for epoch in range(cfg.trainer.epochs):
        t = time.perf_counter()
        loss = train_epoch(model, opt, data)
        with torch.no_grad():
            acc = (model(data.x[160:]).argmax(1) == data.y[160:]).float().mean().item()
        metrics = {"loss": loss, "val/acc": acc}
        log.info(f"epoch {epoch:02d} loss {loss:.5f} val/acc {acc:.4f} [{time.perf_counter() - t:.2f}s]")
        torch.save({"epoch": epoch, "state_dict": model.state_dict(), "hparams": OmegaConf.to_container(cfg, resolve=True)}, out / "last.ckpt")
    return metrics


@hydra.main(version_base=None, config_name="train")
def main(cfg: DictConfig):
    log.info(f"Instantiating <{train.__name__}> pid={os.getpid()} host={os.uname().nodename}")
    print(OmegaConf.to_yaml(cfg, resolve=True))
    out = Path(HydraConfig.get().runtime.output_dir)
    (out / "config_tree.log").write_text(OmegaConf.to_yaml(cfg, resolve=True))
    (out / "tags.log").write_text(str(list(cfg.tags)))
    metrics = train(cfg)
    OmegaConf.save(OmegaConf.create({"name": cfg.task_name, "metrics": {k: float(v) for k, v in metrics.items()}, "output": str(out)}), "results.yaml")
    log.info(f"Metric val/acc: {metrics['val/acc']}")
    return metrics["val/acc"]


if __name__ == "__main__":
    sys.argv += ["model.width=12"]
    main()
