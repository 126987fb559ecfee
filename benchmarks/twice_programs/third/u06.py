# augraphy#221: a default value is drawn while the module is imported, before the seed
import torch
from effects import Dirt, Lines
from mill.batches import chunks
from mill.config import parse
from mill.data import images
from mill.loop import Loop, seed_all
from mill.nets import Cnn
import numpy as np

def augmented(x, steps):
    def one(image):
        for step in steps:
            image = step(image)
        return image
    return np.stack([one(image) for image in x])

def main():
    config = parse(name="paper")
    seed_all(config.seed)
    x, y = images()
    x = augmented(x, [Lines(), Dirt()])
    Loop(config, Cnn(), torch.nn.CrossEntropyLoss()).fit(chunks(x[:32], y[:32], 8), chunks(x[32:], y[32:], 8))

main()
