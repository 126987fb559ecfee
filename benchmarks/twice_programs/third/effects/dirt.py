"""Dirty rollers."""
import random
import numpy as np

class Dirt:
    def __init__(self, width=3, strength=random.uniform(0.1, 0.6), p=1.0):  # cause
        self.width, self.strength, self.p = width, strength, p

    def __call__(self, image):
        if random.random() < self.p:
            at = random.randrange(image.shape[-1] - self.width)
            image = image.copy()
            image[..., at:at + self.width] *= 1 - self.strength
        return image
