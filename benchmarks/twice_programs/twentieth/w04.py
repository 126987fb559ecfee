"""Weekly demand planning: choose an ETS model per product and set safety stock.

Fits a few exponential smoothing variants per series, keeps the one with the
lowest AICc, derives prediction intervals for the next two seasons and turns
their upper bound into reorder points. Writes forecasts, intervals and plan.

Modelled on: https://github.com/sktime/sktime/issues/2315
"""
import datetime
import json
import sys
import time
import warnings

import numpy as np
import pandas as pd
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

warnings.filterwarnings("ignore")

SEED = 42
SEASON = 12
HORIZON = 12
COVERAGE = 0.9
CANDIDATES = [
    {"error": "add", "trend": None, "seasonal": "add"},
    {"error": "mul", "trend": "add", "seasonal": "mul"},
    {"error": "mul", "trend": None, "seasonal": "mul"},
    {"error": "mul", "trend": "add", "seasonal": "add"},
]


def log(message):
    print(f"{datetime.datetime.now():%H:%M:%S} {message}", flush=True)


def make_panel(n_series=7, n_obs=108, seed=SEED):
    """Monthly demand of a handful of products with growth and seasonality."""
    rng = np.random.default_rng(seed)
    index = pd.period_range("2016-01", periods=n_obs, freq="M").to_timestamp()
    t = np.arange(n_obs)
    columns = {}
    for k in range(n_series):
        level = rng.uniform(80, 400)
        growth = rng.uniform(-0.001, 0.006)
        phase = rng.uniform(0, 2 * np.pi)
        amplitude = rng.uniform(0.1, 0.4)
        shape = 1 + amplitude * np.sin(2 * np.pi * t / SEASON + phase)
        shape = shape + 0.1 * np.cos(4 * np.pi * t / SEASON)
        noise = np.exp(rng.normal(0, rng.uniform(0.03, 0.1), n_obs))
        columns[f"SKU-{100 + k}"] = level * (1 + growth) ** t * shape * noise
    return pd.DataFrame(columns, index=index)


class AutoETS:
    """Model selection over CANDIDATES with an information criterion."""

    def __init__(self, candidates, seasonal_periods, maxiter=120):
        self.candidates = candidates
        self.seasonal_periods = seasonal_periods
        self.maxiter = maxiter

    def fit(self, y):
        best = None
        for spec in self.candidates:
            model = ETSModel(y, seasonal_periods=self.seasonal_periods,
                             initialization_method="heuristic", **spec)
            fitted = model.fit(disp=False, maxiter=self.maxiter)
            if best is None or fitted.aicc < best[1].aicc:
                best = (spec, fitted)
        self.spec_, self.fitted_ = best
        self.n_obs_ = len(y)
        return self

    @property
    def label(self):
        code = {None: "N", "add": "A", "mul": "M"}
        return "ETS({},{},{})".format(*(code[self.spec_[k]] for k in ("error", "trend", "seasonal")))

    def predict(self, horizon):
        return self.fitted_.forecast(horizon)

    def predict_interval(self, horizon, coverage):
        start, end = self.n_obs_, self.n_obs_ + horizon - 1
        prediction = self.fitted_.get_prediction(start=start, end=end, simulate_repetitions=400)  # cause
        frame = prediction.summary_frame(alpha=1 - coverage)
        return frame[["pi_lower", "pi_upper"]].rename(
            columns={"pi_lower": "lower", "pi_upper": "upper"})


def backtest(y, horizon, coverage):
    """Accuracy, empirical coverage and width on the last `horizon` months."""
    train, test = y.iloc[:-horizon], y.iloc[-horizon:]
    forecaster = AutoETS(CANDIDATES, SEASON).fit(train)
    point = forecaster.predict(horizon)
    interval = forecaster.predict_interval(horizon, coverage)
    lower, upper = interval["lower"].to_numpy(), interval["upper"].to_numpy()
    actual = test.to_numpy()
    below, above = np.clip(lower - actual, 0, None), np.clip(actual - upper, 0, None)
    score = (upper - lower) + 2 / (1 - coverage) * (below + above)
    return {
        "model": forecaster.label,
        "mape": float(np.mean(np.abs(actual - point.to_numpy()) / actual)),
        "coverage": float(np.mean((actual >= lower) & (actual <= upper))),
        "interval_score": float(np.mean(score)),
    }


def safety_plan(name, point, interval, lead_time=2):
    """Reorder point: demand over the lead time plus the interval's half width."""
    demand = float(point.iloc[:lead_time].sum())
    spread = (interval["upper"].to_numpy() - point.to_numpy())[:lead_time]
    buffer = float(np.sqrt(np.sum(spread ** 2)))
    return {"sku": name, "lead_time_demand": demand, "safety_stock": buffer,
            "reorder_point": int(np.ceil(demand + buffer))}


def main():
    started = time.perf_counter()
    panel = make_panel()
    log(f"panel: {panel.shape[1]} series x {panel.shape[0]} months "
        f"({panel.index[0]:%Y-%m} to {panel.index[-1]:%Y-%m})")

    backtests, plans, frames = {}, [], []
    for name in panel.columns:
        y = panel[name]
        backtests[name] = result = backtest(y, HORIZON, COVERAGE)
        forecaster = AutoETS(CANDIDATES, SEASON).fit(y)
        point = forecaster.predict(HORIZON)
        interval = forecaster.predict_interval(HORIZON, COVERAGE)
        frames.append(pd.DataFrame({
            "sku": name, "month": point.index.strftime("%Y-%m"), "forecast": point.to_numpy(),
            "lower": interval["lower"].to_numpy(), "upper": interval["upper"].to_numpy()}))
        plan = safety_plan(name, point, interval)
        plans.append(plan)
        log(f"{name} {forecaster.label}: mape {result['mape']:.4f} coverage "
            f"{result['coverage']:.2f} score {result['interval_score']:.3f} "
            f"reorder at {plan['reorder_point']}")

    forecasts = pd.concat(frames, ignore_index=True)
    forecasts.to_csv("forecasts.csv", index=False)
    plan_frame = pd.DataFrame(plans).sort_values("safety_stock", ascending=False, kind="stable")
    plan_frame.to_parquet("plan.parquet", index=False)
    total = float(plan_frame["safety_stock"].sum())
    with open("backtest.json", "w") as fh:
        json.dump({"series": backtests, "total_safety_stock": total,
                   "mean_interval_score": float(np.mean(
                       [b["interval_score"] for b in backtests.values()]))}, fh, indent=2)
    log(f"total safety stock: {total:.3f} units")
    log(f"finished in {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
