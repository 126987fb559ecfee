"""Euler simulation of the diffusion process."""
import numpy as np


class Simulator:
    def __init__(self, config):
        self.config = config

    def adapt_parameters(self, theta, n_trials, rng):
        """Trial-wise parameters: the fixed values plus their variability."""
        adapted = {k: np.full(n_trials, float(x)) for k, x in theta.items()}
        for key, draw in self.config.variability.items():
            adapted[key] += draw(size=n_trials)  # cause
        adapted["z"] = np.clip(adapted["z"], 0.05, 0.95)
        adapted["t"] = np.maximum(adapted["t"], 0.0)
        return adapted

    def simulate(self, theta, n_trials, random_state=None):
        """Return response times and choices (+1 upper, -1 lower)."""
        cfg = self.config
        rng = np.random.default_rng(random_state)
        par = self.adapt_parameters(theta, n_trials, rng)
        pos = (2 * par["z"] - 1) * par["a"]
        rts = np.full(n_trials, cfg.max_t)
        choices = np.where(rng.random(n_trials) < 0.5, 1, -1)
        alive = np.arange(n_trials)
        step_sd = cfg.noise * np.sqrt(cfg.dt)
        for k in range(1, int(cfg.max_t / cfg.dt)):
            noise = rng.standard_normal(len(alive))
            pos[alive] += par["v"][alive] * cfg.dt + step_sd * noise
            done = np.abs(pos[alive]) >= par["a"][alive]
            if done.any():
                hit = alive[done]
                rts[hit] = k * cfg.dt
                choices[hit] = np.where(pos[hit] > 0, 1, -1)
                alive = alive[~done]
                if len(alive) == 0:
                    break
        return rts + par["t"], choices
