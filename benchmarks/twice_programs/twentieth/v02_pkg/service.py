"""Answers forecast requests from a pool of request handlers."""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np


@dataclass
class Answer:
    request: object
    lower: np.ndarray
    median: np.ndarray
    upper: np.ndarray


class ForecastService:
    def __init__(self, model, workers):
        self.model = model
        self.workers = workers

    def handle(self, request):
        steps = np.arange(request.start, request.start + request.horizon)
        forecast = self.model.predict(steps, seed=request.seed)
        return Answer(request, *(request.scale * forecast[k] for k in ("lower", "median", "upper")))

    def answer_all(self, requests):
        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            return list(pool.map(self.handle, requests))
