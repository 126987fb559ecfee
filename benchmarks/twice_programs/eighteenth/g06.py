"""Monthly demand forecast per product with prediction intervals (ETS).

For every product a multiplicative ETS model is fitted, the next year is
forecast with its 80% and 95% intervals, and safety stock is derived from the
upper bound.

Modelled on: https://github.com/sktime/sktime/issues/2388
"""
import json
import pathlib
import time
import warnings

import numpy as np
import pandas as pd
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

HORIZON = 12
COVERAGES = (0.80, 0.95)
PRODUCTS = {
    "A-100": dict(level=220.0, growth=1.2, season=0.25, noise=0.06),
    "B-220": dict(level=90.0, growth=0.3, season=0.40, noise=0.09),
    "C-310": dict(level=410.0, growth=-0.8, season=0.15, noise=0.04),
}


def make_history(path, months=84, seed=2022):
    """Sales of the last seven years, written as the export looks like."""
    rng = np.random.default_rng(seed)
    index = pd.period_range("2015-01", periods=months, freq="M")
    frames = []
    for name, p in PRODUCTS.items():
        t = np.arange(months)
        season = 1 + p["season"] * np.sin(2 * np.pi * (t % 12) / 12)
        sales = (p["level"] + p["growth"] * t) * season * np.exp(rng.normal(scale=p["noise"], size=months))
        frames.append(pd.DataFrame({"month": index.astype(str), "product": name, "sales": sales.round(1)}))
    pd.concat(frames).to_csv(path, index=False)


def load_series(path):
    frame = pd.read_csv(path)
    for name, part in frame.groupby("product", sort=True):
        index = pd.PeriodIndex(part.month, freq="M")
        yield name, pd.Series(part.sales.to_numpy(), index=index, name=name)


class IntervalForecaster:
    """ETS model with interval forecasts."""

    def __init__(self, error="mul", trend="add", seasonal="mul", sp=12):
        self.spec = dict(error=error, trend=trend, seasonal=seasonal, seasonal_periods=sp)

    def fit(self, series):
        self.series = series
        model = ETSModel(series.astype(float), **self.spec)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.result = model.fit(disp=False, maxiter=200)
        return self

    def predict(self, horizon):
        return self.result.forecast(horizon)

    def predict_interval(self, horizon, coverages):
        start = self.series.index[-1] + 1
        prediction = self.result.get_prediction(start=start, end=start + horizon - 1)  # cause
        columns = {}
        for coverage in coverages:
            frame = prediction.summary_frame(alpha=1 - coverage)
            columns[f"lower_{coverage:.2f}"] = frame["pi_lower"]
            columns[f"upper_{coverage:.2f}"] = frame["pi_upper"]
        return pd.DataFrame(columns)


def backtest(series, horizon):
    """Error of the forecast of the last year from the years before."""
    forecaster = IntervalForecaster().fit(series[:-horizon])
    forecast = forecaster.predict(horizon)
    actual = series[-horizon:]
    error = np.abs(forecast.to_numpy() - actual.to_numpy())
    return round(float(np.mean(error / actual.to_numpy())), 5)


def main():
    history = pathlib.Path("history.csv")
    make_history(history)
    tables, summary = [], {}
    for name, series in load_series(history):
        began = time.perf_counter()
        mape = backtest(series, HORIZON)
        forecaster = IntervalForecaster().fit(series)
        point = forecaster.predict(HORIZON)
        bounds = forecaster.predict_interval(HORIZON, COVERAGES)
        table = bounds.round(3)
        table.insert(0, "forecast", point.to_numpy().round(3))
        table.insert(0, "month", [str(p) for p in point.index])
        table.insert(0, "product", name)
        tables.append(table)
        safety = bounds["upper_0.95"].to_numpy() - point.to_numpy()
        summary[name] = {
            "mape": mape,
            "aic": round(float(forecaster.result.aic), 4),
            "next_year": round(float(point.sum()), 2),
            "safety_stock": round(float(safety.max()), 2),
        }
        print(
            f"{name}: MAPE {mape:.4f}  next year {summary[name]['next_year']:9.2f}  "
            f"safety stock {summary[name]['safety_stock']:7.2f}"
        )
        print(f"    fitted at {time.strftime('%H:%M:%S')}, took {time.perf_counter() - began:.2f}s")
    pd.concat(tables).to_csv("forecast.csv", index=False)
    pathlib.Path("summary.json").write_text(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
