"""Vertical dirt left by the drum of a printer."""
import random

import numpy as np
from scipy import ndimage

from q14_augment.base import Augmentation


class DirtyDrum(Augmentation):
    def __init__(
        self,
        line_width_range=(1, 4),
        line_concentration=random.uniform(0.05, 0.15),  # cause
        noise_intensity=0.7,
        noise_value=(0, 40),
        blur=1.1,
        p=1.0,
    ):
        super().__init__(p=p)
        self.line_width_range = line_width_range
        self.line_concentration = line_concentration
        self.noise_intensity = noise_intensity
        self.noise_value = noise_value
        self.blur = blur

    def lines(self, width):
        n = max(1, int(round(width * self.line_concentration)))
        starts = sorted(random.sample(range(width), n))
        return [(s, random.randint(*self.line_width_range)) for s in starts]

    def apply(self, image):
        h, w = image.shape
        mask = np.full((h, w), 255.0)
        for start, width in self.lines(w):
            band = mask[:, start : start + width]
            keep = np.random.random(band.shape) < self.noise_intensity * self.line_concentration * 4
            band[keep] = np.random.randint(*self.noise_value, size=int(keep.sum()))
        mask = ndimage.gaussian_filter(mask, self.blur)
        return image * (mask / 255.0)
