# features by a clock of the simulation; NumPy only
import time
import numpy as np
from proj.log import Run

class Simulation:
    def __init__(self, size):
        self.field, self.clock = np.linspace(0, 1, size), time.perf_counter()

    def advance(self):
        now = time.perf_counter()  # cause
        dt = np.float64(now - self.clock)
        self.clock = now
        self.field = self.field + min(dt, 0.5) * np.sin(3 * self.field)

    def run(self, steps):
        for _ in range(steps):
            self.advance()
        return self.field

run = Run("simulation")
field = Simulation(200).run(30)
np.save("field.npy", field)
print("mean", float(field.mean()))
run.finish()
