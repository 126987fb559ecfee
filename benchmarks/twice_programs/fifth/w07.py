"""https://github.com/joke2k/faker/issues/14: names from Faker; only the generators of Python and NumPy are seeded."""
import random

import numpy as np
from faker import Faker


class Customers:
    def __init__(self):
        self.fake = Faker()

    def rows(self, n):
        for _ in range(n):
            yield self.fake.last_name(), self.fake.random_int(18, 90)  # cause


def main():
    random.seed(9)
    np.random.seed(9)
    rows = list(Customers().rows(80))
    x = np.array([[len(name), age] for name, age in rows], dtype=float)
    y = np.random.normal(size=len(x)) + 0.02 * x[:, 1]
    w, *_ = np.linalg.lstsq(np.c_[x, np.ones(len(x))], y, rcond=None)
    print("coefficients", w.tolist())


main()
