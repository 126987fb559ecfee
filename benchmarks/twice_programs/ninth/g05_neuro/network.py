"""Description of a spiking network: populations of small ensembles and the connections between them."""
from dataclasses import dataclass, field

import numpy as np


class Ensemble:
    """A group of LIF neurons that represents one scalar."""

    def __init__(self, label, neurons, tau_rc=0.02, tau_ref=0.002):
        self.label, self.n = label, neurons
        self.tau_rc, self.tau_ref = tau_rc, tau_ref
        self.bias = self.gain = self.encoders = None

    def __repr__(self):
        return f"<Ensemble {self.label} n={self.n}>"


class Population:
    """One ensemble per dimension of a vector."""

    def __init__(self, name, dims, neurons):
        self.name = name
        self.parts = [Ensemble(f"{name}/{d}", neurons) for d in range(dims)]


class Connection:
    def __init__(self, pre, post, gain=1.0, synapse=0.01):
        self.pre, self.post, self.gain, self.synapse = pre, post, gain, synapse
        self.decoders = None


@dataclass
class Network:
    seed: int = 0
    bundles: list = field(default_factory=list)

    def connect(self, pre, post, **kw):
        """Connect two populations dimension by dimension."""
        conns = [Connection(a, b, **kw) for a, b in zip(pre.parts, post.parts)]
        self.bundles.append((pre, post, conns))
        return conns

    @property
    def connections(self):
        return [c for _, _, conns in self.bundles for c in conns]


def rates(ens, x):
    """Steady-state firing rates of the LIF neurons for represented values x."""
    j = ens.gain * (x[:, None] * ens.encoders) + ens.bias
    out = np.zeros_like(j)
    on = j > 1.0
    out[on] = 1.0 / (ens.tau_ref - ens.tau_rc * np.log1p(-1.0 / j[on]))
    return out


class Builder:
    """Draws the tuning curves of every ensemble and solves for decoders."""

    def __init__(self, network, eval_points=60, reg=0.08):
        self.net, self.reg = network, reg
        self.rng = np.random.RandomState(network.seed)
        self.points = np.linspace(-1, 1, eval_points)

    def build(self):
        conns = self.net.connections
        ensembles = list({c.pre for c in conns} | {c.post for c in conns})  # cause
        for ens in ensembles:
            self._build_ensemble(ens)
        for conn in conns:
            self._build_connection(conn)
        return len(ensembles), len(conns)

    def _build_ensemble(self, ens):
        ens.encoders = self.rng.choice([-1.0, 1.0], ens.n)
        max_rates = self.rng.uniform(180, 360, ens.n)
        intercepts = self.rng.uniform(-0.95, 0.9, ens.n)
        j_max = 1.0 / (1 - np.exp((ens.tau_ref - 1 / max_rates) / ens.tau_rc))
        ens.gain = (j_max - 1) / (1 - intercepts)
        ens.bias = 1 - ens.gain * intercepts

    def _build_connection(self, conn):
        act = rates(conn.pre, self.points)
        sigma = self.reg * act.max()
        gram = act.T @ act + sigma ** 2 * len(self.points) * np.eye(conn.pre.n)
        conn.decoders = conn.gain * np.linalg.solve(gram, act.T @ self.points)
