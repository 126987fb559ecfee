"""A damped-trend forecaster with a sampled posterior."""
import numpy as np


class BayesianForecaster:
    def __init__(self, seasonality, n_draws, damping):
        self.seasonality = seasonality
        self.n_draws = n_draws
        self.damping = damping
        self._posterior = {}
        self._training_meta = {}
        self._prediction_meta = {}

    # -- training -------------------------------------------------------
    def fit(self, sales, seed):
        """Least squares on the last year, then draws from the normal posterior."""
        rng = np.random.default_rng(seed)
        y = np.log(np.asarray(sales, dtype=float))
        n = len(y)
        window = min(n, 364)
        t = np.arange(n - window, n)
        design = self._design(t - (n - 1))
        coef, *_ = np.linalg.lstsq(design, y[-window:], rcond=None)
        resid = y[-window:] - design @ coef
        dof = window - design.shape[1]
        sigma2 = float(resid @ resid) / dof
        cov = np.linalg.inv(design.T @ design) * sigma2
        draws = rng.multivariate_normal(coef, cov, size=self.n_draws)
        self._posterior = {
            "level": draws[:, 0],
            "slope": draws[:, 1],
            "season": draws[:, 2:],
            "sigma": np.sqrt(sigma2 * dof / rng.chisquare(dof, self.n_draws)),
        }
        self._training_meta = {"training_end": n - 1, "n_obs": n}
        return self

    def _design(self, t):
        season = np.zeros((len(t), self.seasonality - 1))
        phase = t % self.seasonality
        for k in range(1, self.seasonality):
            season[:, k - 1] = phase == k
        return np.column_stack([np.ones(len(t)), t, season])

    def posterior_means(self):
        return tuple(float(self._posterior[k].mean()) for k in ("level", "slope", "sigma"))

    def state(self):
        return dict(self._posterior)

    # -- prediction -----------------------------------------------------
    def _describe(self, steps):
        """What the components need to know about the dates to predict."""
        gap = int(steps[0]) - self._training_meta["training_end"]
        return {"start": int(steps[0]), "end": int(steps[-1]), "gap": gap, "length": len(steps)}

    def predict(self, steps, seed=None):
        """Median and 80% interval for each of `steps`."""
        self._prediction_meta = self._describe(steps)  # cause
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((self.n_draws, self._prediction_meta["length"]))
        trend = self._trend()
        season = self._season()
        sample = np.exp(trend + season + noise * self._posterior["sigma"][:, None])
        low, mid, high = np.quantile(sample, [0.1, 0.5, 0.9], axis=0)
        return {"lower": low, "median": mid, "upper": high}

    def _trend(self):
        meta = self._prediction_meta
        ahead = meta["gap"] + np.arange(meta["length"])
        damped = self.damping * (1 - self.damping ** ahead) / (1 - self.damping)
        return self._posterior["level"][:, None] + self._posterior["slope"][:, None] * damped

    def _season(self):
        meta = self._prediction_meta
        phase = (meta["gap"] + np.arange(meta["length"])) % self.seasonality
        table = np.column_stack([np.zeros(self.n_draws), self._posterior["season"]])
        return table[:, phase]
