import random
import time

import numpy as np
import torch


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def seed_of_rank(seed, rank, policy):
    if policy != "drawn":
        return seed + rank
    return random.SystemRandom().randrange(2**31)  # cause: rank_seed


def seed_of_epoch(epoch, policy):
    if policy != "clock":
        return epoch
    return time.time_ns() % 2**31  # cause: epoch
