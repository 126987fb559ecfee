import logging

import numpy as np

log = logging.getLogger(__name__)


class EnsembleSampler:
    """Affine-invariant ensemble sampler with the stretch move."""

    def __init__(self, nwalkers, dim, log_prob, args=(), a=2.0):
        if nwalkers % 2 or nwalkers < 2 * dim:
            raise ValueError("need an even number of walkers, at least twice the dimension")
        self.nwalkers = nwalkers
        self.dim = dim
        self.a = a
        self._log_prob = log_prob
        self._args = args
        self._random = np.random.mtrand.RandomState()  # cause
        self.reset()

    def reset(self):
        self.chain = []
        self.log_probability = []
        self.accepted = np.zeros(self.nwalkers)

    def _evaluate(self, points):
        return np.array([self._log_prob(p, *self._args) for p in points])

    def _stretch(self, first, second, lp_first):
        half = len(first)
        zz = ((self.a - 1.0) * self._random.rand(half) + 1) ** 2.0 / self.a
        partner = self._random.randint(half, size=half)
        proposal = second[partner] - zz[:, None] * (second[partner] - first)
        lp = self._evaluate(proposal)
        delta = (self.dim - 1.0) * np.log(zz) + lp - lp_first
        accept = delta > np.log(self._random.rand(half))
        return proposal, lp, accept

    def run_mcmc(self, p0, steps):
        p = np.array(p0, float)
        lp = self._evaluate(p)
        half = self.nwalkers // 2
        first, second = slice(0, half), slice(half, None)
        for step in range(steps):
            for s0, s1 in ((first, second), (second, first)):
                proposal, new_lp, accept = self._stretch(p[s0], p[s1], lp[s0])
                p[s0][accept] = proposal[accept]
                lp[s0][accept] = new_lp[accept]
                self.accepted[s0] += accept
            self.chain.append(p.copy())
            self.log_probability.append(lp.copy())
            if step % 100 == 0:
                log.info("step %d best %.3f", step, lp.max())
        return p

    def get_chain(self, discard=0, thin=1, flat=False):
        chain = np.array(self.chain[discard::thin])
        return chain.reshape(-1, self.dim) if flat else chain

    @property
    def acceptance_fraction(self):
        return self.accepted / max(1, len(self.chain))
