"""Runs trials in worker processes and collects their results in order."""
import logging
import multiprocessing as mp

from .trainable import SpiralNet

log = logging.getLogger("tune")


def run_trial(job):
    trial_id, config, iterations = job
    trainable = SpiralNet(config)
    history = []
    best = None
    for _ in range(iterations):
        result = trainable.train()
        history.append(result)
        if best is None or result["accuracy"] > best["accuracy"]:
            best = result
    return trial_id, config, best, history


def run(search, num_samples, iterations, workers=2):
    jobs = [(k, search.suggest(), iterations) for k in range(num_samples)]
    results = []
    with mp.get_context("spawn").Pool(workers) as pool:
        for trial_id, config, best, history in pool.imap(run_trial, jobs):
            log.info("trial %02d %s accuracy %.4f", trial_id, config, best["accuracy"])
            results.append({"trial": trial_id, "config": config, "best": best, "history": history})
    return results
