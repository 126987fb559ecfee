import numpy as np


class HFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img, rng):
        if rng.random() < self.p:
            return img[:, ::-1]
        return img


class Shift:
    def __init__(self, limit=2, p=0.8):
        self.limit, self.p = limit, p

    def __call__(self, img, rng):
        if rng.random() >= self.p:
            return img
        dy, dx = rng.integers(-self.limit, self.limit + 1, size=2)
        return np.roll(img, (int(dy), int(dx)), axis=(0, 1))


class GaussNoise:
    def __init__(self, sigma=0.08):
        self.sigma = sigma

    def __call__(self, img, rng):
        return img + rng.normal(0.0, self.sigma, img.shape).astype(np.float32)


class CoarseDropout:
    def __init__(self, size=4, p=0.3):
        self.size, self.p = size, p

    def __call__(self, img, rng):
        if rng.random() < self.p:
            y, x = rng.integers(0, img.shape[0] - self.size, size=2)
            img = img.copy()
            img[y:y + self.size, x:x + self.size] = 0.0
        return img


class Compose:
    """Chains transforms; every pipeline carries its own stream of numbers."""

    def __init__(self, transforms, seed=None):
        self.transforms = list(transforms)
        self.rng = np.random.default_rng(seed)  # cause

    def __call__(self, img):
        for t in self.transforms:
            img = t(img, self.rng)
        return np.ascontiguousarray(img)
