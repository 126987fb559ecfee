"""Array transforms with a common interface for random state handling."""
import numpy as np


class Transform:
    def __call__(self, image, label):
        raise NotImplementedError


class Randomizable(Transform):
    """Base class of transforms that draw parameters for every sample.

    Each instance keeps its own stream, so that adding a transform to a chain
    does not shift the parameters of the transforms after it.
    """

    def __init__(self, prob=1.0):
        self.prob = prob
        self.R = np.random.RandomState()  # cause

    def set_random_state(self, seed=None, state=None):
        if state is not None:
            self.R = state
        elif seed is not None:
            self.R = np.random.RandomState(seed)
        return self

    def do_transform(self):
        return self.R.rand() < self.prob


class ScaleIntensity(Transform):
    def __init__(self, low=0.0, high=1.0):
        self.low, self.high = low, high

    def __call__(self, image, label):
        lo, hi = image.min(), image.max()
        image = (image - lo) / max(hi - lo, 1e-6)
        return image * (self.high - self.low) + self.low, label


class RandFlip(Randomizable):
    def __init__(self, prob, axis):
        super().__init__(prob)
        self.axis = axis

    def __call__(self, image, label):
        if not self.do_transform():
            return image, label
        return np.flip(image, self.axis).copy(), np.flip(label, self.axis).copy()


class RandAffineShift(Randomizable):
    def __init__(self, prob, max_shift):
        super().__init__(prob)
        self.max_shift = max_shift

    def __call__(self, image, label):
        if not self.do_transform():
            return image, label
        dy, dx = self.R.randint(-self.max_shift, self.max_shift + 1, size=2)
        return np.roll(image, (dy, dx), (0, 1)), np.roll(label, (dy, dx), (0, 1))


class RandGamma(Randomizable):
    def __init__(self, prob, low, high):
        super().__init__(prob)
        self.low, self.high = low, high

    def __call__(self, image, label):
        if not self.do_transform():
            return image, label
        gamma = self.R.uniform(self.low, self.high)
        return np.power(np.clip(image, 0.0, 1.0), gamma), label


class RandGaussianNoise(Randomizable):
    def __init__(self, prob, std):
        super().__init__(prob)
        self.std = std

    def __call__(self, image, label):
        if not self.do_transform():
            return image, label
        return image + self.R.normal(0.0, self.std, size=image.shape), label


class Chain(Transform):
    def __init__(self, transforms):
        self.transforms = list(transforms)

    def set_random_state(self, seed):
        seeds = np.random.SeedSequence(seed).generate_state(len(self.transforms))
        for tf, s in zip(self.transforms, seeds):
            if isinstance(tf, Randomizable):
                tf.set_random_state(seed=int(s))
        return self

    def __call__(self, image, label):
        for tf in self.transforms:
            image, label = tf(image, label)
        return image, label
