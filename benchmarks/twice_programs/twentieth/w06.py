"""Train a small convolutional classifier on glyph images with augmentation.

Renders a data set of noisy glyphs, trains for a few epochs with random shifts,
contrast changes and erasing, evaluates on clean images and stores the training
history, the confusion matrix and the weights.

Modelled on: https://github.com/meta-pytorch/torchtune/issues/168
"""
import json
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from w06_pkg.config import load_config
from w06_pkg.data import GlyphDataset, build_dataloader
from w06_pkg.recipe import TrainRecipe
from w06_pkg.transforms import Compose, RandomContrast, RandomErase, RandomShift


def main():
    cfg = load_config([a for a in sys.argv[1:] if "=" in a])
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    print(f"config: {cfg}")

    augment = Compose([RandomShift(2), RandomContrast(0.3), RandomErase(5)])
    train_set = GlyphDataset(1600, seed=cfg.seed, transform=augment)
    valid_set = GlyphDataset(600, seed=cfg.seed + 1)
    train_loader = build_dataloader(train_set, cfg.batch_size, shuffle=True,
                                    num_workers=cfg.num_workers, seed=cfg.dataloader_seed)
    valid_loader = build_dataloader(valid_set, 200, shuffle=False,
                                    num_workers=cfg.num_workers, seed=cfg.dataloader_seed)

    recipe = TrainRecipe(cfg)
    history = recipe.train(train_loader, valid_loader)
    accuracy, confusion = recipe.evaluate(valid_loader)
    print(f"final: accuracy {accuracy:.4f}, {int(confusion.sum() - np.trace(confusion))} errors")

    np.savetxt("confusion.csv", confusion, fmt="%d", delimiter=",")
    torch.save(recipe.model.state_dict(), "model.pt")
    with open("history.json", "w") as fh:
        json.dump({"history": history, "accuracy": accuracy}, fh, indent=2)


if __name__ == "__main__":
    main()
