"""Ink related augmentations."""
import random

import numpy as np
from scipy import ndimage

from q14_augment.base import Augmentation


class InkBleed(Augmentation):
    def __init__(self, intensity_range=(0.2, 0.5), p=0.8):
        super().__init__(p)
        self.intensity_range = intensity_range

    def apply(self, image):
        amount = random.uniform(*self.intensity_range)
        grown = ndimage.grey_erosion(image, size=(3, 3))
        noise = np.random.random(image.shape) < amount
        return np.where(noise, grown, image)


class Brightness(Augmentation):
    def __init__(self, low=0.85, high=1.1, p=0.7):
        super().__init__(p)
        self.low, self.high = low, high

    def apply(self, image):
        return np.clip(image * random.uniform(self.low, self.high), 0, 255)
