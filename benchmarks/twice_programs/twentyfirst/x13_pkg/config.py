"""Constants of the chain and the shared random source of the agents."""
import numpy as np

GAS_LIMIT = 20_000_000
TARGET_GAS = 10_000_000
MAX_CHANGE = 8
INITIAL_BASEFEE = 12.0
MIN_BASEFEE = 1.0
GAS_CLASSES = {"transfer": 21_000, "token": 65_000, "swap": 160_000}
GAS_SHARES = (0.45, 0.35, 0.20)
POOL_LIMIT = 3000

rng = np.random.default_rng()  # cause
