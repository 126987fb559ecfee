# ppsim#16: random variates of scipy without a seed
import numpy as np
from scipy import stats
from lab.log import Run

class Population:
    def __init__(self, size):
        self.infected = 5
        self.size = size

    def day(self):
        self.infected = min(self.size, self.infected + int(stats.poisson.rvs(self.infected * 0.4)))  # cause
        return self.infected

run = Run("epidemic")
population = Population(5000)
curve = [population.day() for _ in range(15)]
np.savetxt("curve.txt", curve, fmt="%d")
print("infected", curve[-1])
