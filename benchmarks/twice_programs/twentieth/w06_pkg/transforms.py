"""Random image transforms in the style of torchvision's functional API."""
import random

import torch


class RandomTransform:
    """Base class with the sampling of transform parameters."""

    def sample(self, low, high):
        return random.uniform(low, high)  # cause

    def sample_int(self, low, high):
        return min(high, low + int(self.sample(0, high - low + 1)))


class RandomShift(RandomTransform):
    def __init__(self, max_shift):
        self.max_shift = max_shift

    def __call__(self, image):
        dx = self.sample_int(-self.max_shift, self.max_shift)
        dy = self.sample_int(-self.max_shift, self.max_shift)
        return torch.roll(image, (dy, dx), dims=(0, 1))


class RandomContrast(RandomTransform):
    def __init__(self, strength):
        self.strength = strength

    def __call__(self, image):
        gain = self.sample(1 - self.strength, 1 + self.strength)
        mean = image.mean()
        return (image - mean) * gain + mean


class RandomErase(RandomTransform):
    def __init__(self, size, p=0.5):
        self.size = size
        self.p = p

    def __call__(self, image):
        if self.sample(0, 1) >= self.p:
            return image
        height, width = image.shape
        top = self.sample_int(0, height - self.size)
        left = self.sample_int(0, width - self.size)
        image = image.clone()
        image[top:top + self.size, left:left + self.size] = image.mean()
        return image


class Compose:
    def __init__(self, transforms):
        self.transforms = list(transforms)

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image
