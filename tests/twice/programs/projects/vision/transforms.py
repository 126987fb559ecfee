import random

import torch


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


class Flip:
    def __call__(self, image):
        return image.flip(-1) if torch.rand(()) < 0.5 else image


class Jitter:
    def __init__(self, strength=0.2):
        self.strength = strength
        self.random = random.Random()  # cause: jitter

    def __call__(self, image):
        return image * (1 + self.random.uniform(-self.strength, self.strength))
