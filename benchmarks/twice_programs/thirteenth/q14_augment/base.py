"""Base classes."""
import random


class Augmentation:
    def __init__(self, p=1.0):
        self.p = p

    def should_run(self):
        return random.random() <= self.p

    def apply(self, image):
        raise NotImplementedError

    def __call__(self, image):
        return self.apply(image) if self.should_run() else image


class AugmentationSequence:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image
