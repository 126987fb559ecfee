"""Train a small restoration network (signal denoising) from an option file and
report PSNR on the validation images.

Modelled on: https://github.com/emidan19/deep-tempest/issues/13
"""
import json
import logging
import os
import random
import time

import numpy as np
import torch
from torch.utils.data import DataLoader

from k03_pkg import option
from k03_pkg.dataset import RestorationSet
from k03_pkg.model import ModelPlain


def setup_logger(path):
    logger = logging.getLogger("train")
    logger.setLevel(logging.INFO)
    formatter = logging.Formatter("%(asctime)s : %(message)s", datefmt="%y-%m-%d %H:%M:%S")
    for handler in (logging.FileHandler(path), logging.StreamHandler()):
        handler.setFormatter(formatter)
        logger.addHandler(handler)
    return logger


def psnr(estimate, target):
    mse = float(((estimate - target) ** 2).mean())
    return 10 * np.log10(1.0 / max(mse, 1e-12))


def evaluate(model, loader):
    scores = []
    for batch in loader:
        estimate = model.test(batch["L"])
        scores += [psnr(e, h) for e, h in zip(estimate, batch["H"])]
    return float(np.mean(scores))


def main():
    opt = option.parse()
    os.makedirs(opt["path"]["models"], exist_ok=True)
    logger = setup_logger(os.path.join(opt["path"]["root"], "train.log"))

    # ----------------------------------------
    # seed
    # ----------------------------------------
    seed = opt["train"].get("manual_seed", None)
    if seed is None:
        seed = random.randint(1, 10000)  # cause
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)

    # ----------------------------------------
    # data
    # ----------------------------------------
    train_set = RestorationSet(opt["datasets"]["train"])
    test_set = RestorationSet(opt["datasets"]["test"])
    train_loader = DataLoader(train_set, batch_size=opt["datasets"]["train"]["batch_size"],
                              shuffle=True, drop_last=True, num_workers=0)
    test_loader = DataLoader(test_set, batch_size=16, shuffle=False)
    logger.info("train images: %d, test images: %d", len(train_set), len(test_set))

    # ----------------------------------------
    # train
    # ----------------------------------------
    model = ModelPlain(opt)
    history = []
    step = 0
    started = time.time()
    for epoch in range(opt["train"]["epochs"]):
        for batch in train_loader:
            step += 1
            loss = model.optimize_parameters(batch["L"], batch["H"])
            if step % opt["train"]["checkpoint_print"] == 0:
                logger.info("<epoch:%d, iter:%d> G_loss: %.4e", epoch, step, loss)
        score = evaluate(model, test_loader)
        history.append({"epoch": epoch, "iter": step, "psnr": round(score, 4)})
        model.update_learning_rate()
        print(f"epoch {epoch}  average PSNR {score:.3f} dB")
    logger.info("finished, elapsed %.1f s", time.time() - started)

    model.save(os.path.join(opt["path"]["models"], "G.pth"))
    with open(os.path.join(opt["path"]["root"], "metrics.json"), "w") as handle:
        json.dump(history, handle, indent=1)


if __name__ == "__main__":
    main()
