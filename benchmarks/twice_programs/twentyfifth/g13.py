"""Risk-neutral densities and a book valuation from quoted option chains.

For every expiry the quotes are turned into implied volatilities, smoothed, and
differentiated twice for the density of the price at expiry; the probabilities
and the value of a book of options are reported and written as CSV.

Modelled on: https://github.com/Open-Lemma/options-implied-probability/issues/50
"""
import time
from datetime import datetime

import numpy as np
import pandas as pd
from scipy.interpolate import UnivariateSpline
from scipy.optimize import brentq
from scipy.stats import norm

SPOT = 412.5
RATE = 0.031
EXPIRIES = ["2034-03-17", "2034-06-16", "2034-12-15", "2035-06-15", "2036-12-19"]
QUOTE_DAY = datetime(2025, 9, 30, 16, 0)
YEAR = 365.25 * 24 * 3600


def black_scholes(spot, strike, years, rate, vol):
    d1 = (np.log(spot / strike) + (rate + vol * vol / 2) * years) / (vol * np.sqrt(years))
    d2 = d1 - vol * np.sqrt(years)
    return spot * norm.cdf(d1) - strike * np.exp(-rate * years) * norm.cdf(d2)


def make_chain(expiry, seed):
    """Call quotes as the vendor's file has them (mid prices with some noise)."""
    rng = np.random.default_rng(seed)
    years = (datetime.fromisoformat(expiry) - QUOTE_DAY).total_seconds() / YEAR
    strikes = np.arange(200.0, 801.0, 12.5)
    smile = 0.21 + 0.06 * np.log(strikes / SPOT) ** 2 - 0.03 * np.log(strikes / SPOT)
    price = black_scholes(SPOT, strikes, years, RATE, smile)
    mid = np.round(price * (1 + rng.normal(0, 0.0006, len(strikes))), 2)
    return pd.DataFrame({"expiry": expiry, "strike": strikes, "mid": mid})


class DensityModel:
    """Breeden-Litzenberger density of one expiry."""

    def __init__(self, chain, valuation):
        self.chain = chain
        expiry = datetime.fromisoformat(chain["expiry"].iloc[0]).replace(hour=16)
        self.years = (expiry - valuation).total_seconds() / YEAR
        self.expiry = expiry

    def implied_vol(self, strike, price):
        def gap(vol):
            return black_scholes(SPOT, strike, self.years, RATE, vol) - price

        return brentq(gap, 0.01, 2.0, xtol=1e-13)

    def fit(self):
        strikes = self.chain["strike"].to_numpy()
        vols = np.array([self.implied_vol(k, p) for k, p in zip(strikes, self.chain["mid"])])
        self.smile = UnivariateSpline(strikes, vols, k=4, s=len(strikes) * 2e-6)
        self.grid = np.linspace(strikes[0], strikes[-1], 2401)
        calls = black_scholes(SPOT, self.grid, self.years, RATE, self.smile(self.grid))
        step = self.grid[1] - self.grid[0]
        second = np.gradient(np.gradient(calls, step), step)
        self.density = np.maximum(np.exp(RATE * self.years) * second, 0.0)
        mass = self.density.sum() * step
        self.density /= mass
        self.cdf = np.cumsum(self.density) * step
        return self

    def probability_above(self, level):
        return 1.0 - float(np.interp(level, self.grid, self.cdf))

    def quantile(self, q):
        return float(np.interp(q, self.cdf, self.grid))

    def price(self, strike):
        return float(black_scholes(SPOT, strike, self.years, RATE, float(self.smile(strike))))


def make_book(seed):
    rng = np.random.default_rng(seed)
    return [(EXPIRIES[int(rng.integers(len(EXPIRIES)))], float(rng.choice([350, 400, 450, 500, 600])),
             int(rng.integers(-4000, 9000))) for _ in range(60)]


def value_book(models, book, valuation_rate=RATE):
    rows = []
    for expiry, strike, quantity in book:
        model = models[expiry]
        price = model.price(strike)
        bump = black_scholes(SPOT * 1.01, strike, model.years, RATE, float(model.smile(strike)))
        rows.append({"expiry": expiry, "strike": strike, "quantity": quantity,
                     "price": price, "value": 100 * quantity * price,
                     "one_percent_up": 100 * quantity * (float(bump) - price)})
    return pd.DataFrame(rows)


def main():
    began = time.time()
    chains = {expiry: make_chain(expiry, seed=60 + k) for k, expiry in enumerate(EXPIRIES)}
    valuation = datetime.now()  # cause
    models, rows = {}, []
    for expiry in EXPIRIES:
        model = DensityModel(chains[expiry], valuation).fit()
        models[expiry] = model
        rows.append({"expiry": expiry, "years": model.years, "atm_vol": float(model.smile(SPOT)),
                     "p_above_spot": model.probability_above(SPOT),
                     "p_above_500": model.probability_above(500.0),
                     "q05": model.quantile(0.05), "median": model.quantile(0.5),
                     "q95": model.quantile(0.95)})
    table = pd.DataFrame(rows)
    table.to_csv("densities.csv", index=False)
    print(table.round(6).to_string(index=False))
    book = value_book(models, make_book(seed=70))
    book.to_csv("book.csv", index=False)
    by_expiry = book.groupby("expiry")[["value", "one_percent_up"]].sum()
    print(by_expiry.map(lambda v: f"{v:.4f}").to_string())
    print(f"value of the book: {book['value'].sum():.4f}")
    print(f"gain for one per cent up: {book['one_percent_up'].sum():.4f}")
    print(f"calculated in {time.time() - began:.2f} s")


if __name__ == "__main__":
    main()
