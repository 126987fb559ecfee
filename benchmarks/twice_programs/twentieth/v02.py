"""Backfills the demand forecasts of all stores with one shared model.

Trains a damped-trend model with weekly seasonality, then answers one forecast
request per store and cut-off date and scores the answers on the hold-out.
Writes forecasts.csv, scores.json and model.npz.
Modelled on: https://github.com/uber/orbit/issues/782
"""
import logging
import time

import numpy as np

from v02_pkg.data import make_history, make_requests
from v02_pkg.model import BayesianForecaster
from v02_pkg.report import save_forecasts, save_scores
from v02_pkg.service import ForecastService

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("backfill")

SEED = 1234
WORKERS = 8


def main():
    started = time.time()
    history = make_history(n_days=900, seed=SEED)
    train, holdout = history[:720], history[720:]
    model = BayesianForecaster(seasonality=7, n_draws=400, damping=0.995)
    model.fit(train, seed=SEED)
    log.info("posterior mean level %.4f slope %.5f sigma %.4f", *model.posterior_means())
    np.savez("model.npz", **model.state())

    requests = make_requests(n_stores=190, n_cutoffs=18, train_end=len(train), horizon=28, seed=SEED)
    service = ForecastService(model, workers=WORKERS)
    answers = service.answer_all(requests)
    log.info("answered %d requests", len(answers))

    save_forecasts(answers, "forecasts.csv")
    scores = save_scores(answers, holdout, len(train), "scores.json")
    print(f"MAPE {scores['mape']:.8f}  coverage {scores['coverage']:.6f}  pinball {scores['pinball']:.8f}")
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
