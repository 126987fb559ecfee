"""Augmenters. Every augmenter owns a generator, derived from `seed`."""
import numpy as np
from scipy import ndimage

from . import colorspace as cs


class RNG:
    """Thin wrapper that can hand out child generators."""

    def __init__(self, seed=None):
        self._seq = np.random.SeedSequence(seed)
        self.generator = np.random.default_rng(self._seq)

    def derive(self):
        child = RNG.__new__(RNG)
        child._seq = self._seq.spawn(1)[0]
        child.generator = np.random.default_rng(child._seq)
        return child

    @classmethod
    def create_if_not_rng(cls, seed):
        return seed.derive() if isinstance(seed, RNG) else cls(seed)


class Augmenter:
    def __init__(self, seed=None):
        self.rng = RNG.create_if_not_rng(seed)

    def __call__(self, images):
        return np.stack([self.augment(im) for im in images])

    def __repr__(self):
        return type(self).__name__

    def augment(self, image):
        raise NotImplementedError


class Sequential(Augmenter):
    def __init__(self, children, seed=0):
        super().__init__(seed)
        self.children = list(children)

    def augment(self, image):
        for c in self.children:
            image = c.augment(image)
        return image

    def __repr__(self):
        return "[" + ", ".join(map(repr, self.children)) + "]"


class Fliplr(Augmenter):
    def __init__(self, p, seed=None):
        super().__init__(seed)
        self.p = p

    def augment(self, image):
        return image[:, ::-1] if self.rng.generator.random() < self.p else image


class Translate(Augmenter):
    def __init__(self, px, seed=None):
        super().__init__(seed)
        self.px = px

    def augment(self, image):
        dy, dx = self.rng.generator.integers(-self.px, self.px + 1, 2)
        return np.roll(image, (dy, dx), axis=(0, 1))


class Dropout(Augmenter):
    def __init__(self, p, seed=None):
        super().__init__(seed)
        self.p = p

    def augment(self, image):
        g = self.rng.generator
        keep = g.random(image.shape[:2]) >= g.uniform(*self.p)
        return image * keep[..., None].astype(image.dtype)


class GaussianBlur(Augmenter):
    def __init__(self, sigma, seed=None):
        super().__init__(seed)
        self.sigma = sigma

    def augment(self, image):
        s = self.rng.generator.uniform(*self.sigma)
        return ndimage.gaussian_filter(image, (s, s, 0)) if s > 0.1 else image


class Add(Augmenter):
    """Adds one value to a single plane."""

    def __init__(self, value, seed=None):
        super().__init__(seed)
        self.value = value

    def augment(self, plane):
        return plane + self.rng.generator.uniform(*self.value)


class WithBrightnessChannels(Augmenter):
    """Runs `children` on the brightness plane of a randomly chosen colour space."""

    SPACES = {"HSV": (cs.rgb_to_hsv, cs.hsv_to_rgb, 2, 255.0), "YUV": (cs.rgb_to_yuv, cs.yuv_to_rgb, 0, 1.0)}

    def __init__(self, children, to_colorspace=("HSV", "YUV"), seed=None):
        super().__init__(seed)
        self.children = children
        self.to_colorspace = list(to_colorspace)

    def augment(self, image):
        name = self.to_colorspace[self.rng.generator.integers(len(self.to_colorspace))]
        fwd, back, ch, scale = self.SPACES[name]
        x = fwd(image)
        x[..., ch] = np.clip(self.children.augment(x[..., ch] * scale), 0, 255) / scale
        return back(x)


class AddToBrightness(WithBrightnessChannels):
    def __init__(self, add=(-30, 30), seed=None):
        super().__init__(
            children=Add(add),  # cause
            seed=seed)
