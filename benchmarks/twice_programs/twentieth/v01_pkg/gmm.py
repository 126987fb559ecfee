"""A diagonal Gaussian mixture fitted by expectation maximisation."""
import numpy as np
from sklearn.cluster import kmeans_plusplus


class MixtureBase:
    """Estimator with the numerical work; subclasses choose the defaults."""

    def __init__(self, num_components, convergence_tolerance, covariance_regularization, max_iter, seed=None):
        self.num_components = num_components
        self.convergence_tolerance = convergence_tolerance
        self.covariance_regularization = covariance_regularization
        self.max_iter = max_iter
        self.seed = seed

    def fit(self, X):
        self._initialise(X)
        previous = -np.inf
        for self.n_iter_ in range(1, self.max_iter + 1):
            logp = self._log_joint(X)
            norm = np.logaddexp.reduce(logp, axis=1)
            self._maximise(X, np.exp(logp - norm[:, None]))
            current = float(norm.mean())
            if current - previous < self.convergence_tolerance:
                break
            previous = current
        return self

    def _initialise(self, X):
        centers, _ = kmeans_plusplus(X, self.num_components, random_state=self.seed)  # cause
        distance = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
        resp = np.zeros((len(X), self.num_components))
        resp[np.arange(len(X)), distance.argmin(axis=1)] = 1.0
        self._maximise(X, resp)

    def _maximise(self, X, resp):
        mass = resp.sum(axis=0) + 1e-10
        self.weights_ = mass / mass.sum()
        self.means_ = (resp.T @ X) / mass[:, None]
        second = (resp.T @ (X ** 2)) / mass[:, None]
        self.variances_ = np.maximum(second - self.means_ ** 2, 0) + self.covariance_regularization

    def _log_joint(self, X):
        precision = 1.0 / self.variances_
        quad = (X ** 2) @ precision.T - 2 * X @ (self.means_ * precision).T + (self.means_ ** 2 * precision).sum(axis=1)
        logdet = np.log(self.variances_).sum(axis=1)
        return np.log(self.weights_) - 0.5 * (quad + logdet + X.shape[1] * np.log(2 * np.pi))

    def score(self, X):
        return np.logaddexp.reduce(self._log_joint(X), axis=1).mean()

    def predict(self, X):
        return self._log_joint(X).argmax(axis=1)


class GaussianMixture(MixtureBase):
    """Mixture for spatial features, with the options of this package."""

    def __init__(self, n_clusters, convergence_tolerance=1e-4, covariance_regularization=1e-3, max_iter=60, random_state=0):
        super().__init__(  # cause
            num_components=n_clusters,
            convergence_tolerance=convergence_tolerance,
            covariance_regularization=covariance_regularization,
            max_iter=max_iter,
        )
        self.n_clusters = n_clusters
        self.random_state = random_state
