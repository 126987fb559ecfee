"""https://github.com/facebookresearch/detectron2/issues/4438: the seed of the settings does not get to the sampler, which draws one of its own."""

import random

import torch
from detlab.build import build_loader
from detlab.engine import Trainer

CFG = {"SEED": 3, "IMAGES": 90, "BATCH": 8, "WORKERS": 0, "LR": 0.02}


def default_setup(cfg):
    random.seed(cfg["SEED"])
    torch.manual_seed(cfg["SEED"])


def main():
    default_setup(CFG)
    model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.ReLU(), torch.nn.Linear(24, 4))
    optimizer = torch.optim.SGD(model.parameters(), CFG["LR"], momentum=0.9)
    trainer = Trainer(model, build_loader(CFG), optimizer)
    trainer.train(0, 30)
    torch.save(model.state_dict(), "model_final.pth")


if __name__ == "__main__":
    main()
