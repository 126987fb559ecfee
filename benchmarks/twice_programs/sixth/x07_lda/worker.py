import numpy as np
from scipy.special import digamma


def expect_log(x):
    return digamma(x) - digamma(x.sum(axis=-1, keepdims=True))


def e_step(counts, lam, alpha, iters=25):
    """Variational E-step for one chunk; returns sufficient statistics and a bound term."""
    exp_beta = np.exp(expect_log(lam))
    gamma = np.ones((len(counts), len(lam)))
    for _ in range(iters):
        exp_theta = np.exp(expect_log(gamma))
        norm = exp_theta @ exp_beta + 1e-100
        gamma = alpha + exp_theta * ((counts / norm) @ exp_beta.T)
    exp_theta = np.exp(expect_log(gamma))
    norm = exp_theta @ exp_beta + 1e-100
    stats = exp_beta * (exp_theta.T @ (counts / norm))
    return stats, float((counts * np.log(norm)).sum())


def worker_loop(jobs, results, alpha):
    while True:
        job = jobs.get()
        if job is None:
            return
        index, counts, lam = job
        stats, bound = e_step(counts, lam, alpha)
        results.put((index, stats, bound))
