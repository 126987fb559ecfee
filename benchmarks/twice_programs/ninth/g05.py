"""Working memory of a spiking network: items are stored as high-dimensional vectors and recalled after a delay.

Modelled on https://github.com/nengo/nengo/issues/74 where the output of the simulator varied on different executions.
"""
import argparse
import json
import logging
import time

import numpy as np

from g05_neuro.network import Builder, Network, Population

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
log = logging.getLogger("spiking")


def memory_network(seed, dims, neurons, stages):
    """Stimulus -> memory -> delay line -> output, with a weak direct path."""
    net = Network(seed=seed)
    stim, mem, out = (Population(n, dims, neurons) for n in ("stimulus", "memory", "output"))
    line = [Population(f"delay{k}", dims, neurons) for k in range(stages)]
    net.connect(stim, mem, gain=0.8, synapse=0.01)
    net.connect(mem, mem, gain=1.0, synapse=0.1)
    for a, b in zip([mem] + line, line + [out]):
        net.connect(a, b, gain=1.05, synapse=0.005)
    net.connect(stim, out, gain=0.15, synapse=0.005)
    return net, (stim, mem, *line, out)


class Simulator:
    """Steps all ensembles of a population at once."""

    def __init__(self, net, pops, dt=0.001):
        self.dt, self.pops, self.net = dt, {p.name: p for p in pops}, net
        self.state, self.spikes = {}, {p.name: 0 for p in pops}
        for p in pops:
            self.state[p.name] = {
                "enc": np.array([e.encoders * e.gain for e in p.parts]), "bias": np.array([e.bias for e in p.parts]),
                "v": np.zeros((len(p.parts), p.parts[0].n)), "ref": np.zeros((len(p.parts), p.parts[0].n))}
        self.bundles = [(a.name, b.name, np.array([c.decoders for c in cs]), np.exp(-dt / cs[0].synapse),
                         np.zeros(len(cs))) for a, b, cs in net.bundles]

    def _lif(self, name, x):
        s, e = self.state[name], self.pops[name].parts[0]
        current = s["enc"] * x[:, None] + s["bias"]
        delta = np.clip(self.dt - s["ref"], 0, self.dt)
        s["v"] -= (current - s["v"]) * np.expm1(-delta / e.tau_rc)
        fired = s["v"] > 1
        np.maximum(s["v"], 0, out=s["v"])
        s["ref"] -= self.dt
        s["ref"][fired] = e.tau_ref
        s["v"][fired] = 0
        self.spikes[name] += int(np.count_nonzero(fired))
        return fired / self.dt

    def step(self, stimulus):
        total = {n: np.zeros(len(p.parts)) for n, p in self.pops.items()}
        total["stimulus"] += stimulus
        for _, post, _, _, filt in self.bundles:
            total[post] += filt
        act = {n: self._lif(n, total[n]) for n in self.pops}
        for pre, _, dec, decay, filt in self.bundles:
            filt *= decay
            filt += (1 - decay) * (act[pre] * dec).sum(1)
        return total["output"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--dims", type=int, default=2560)
    p.add_argument("--neurons", type=int, default=6)
    p.add_argument("--stages", type=int, default=5)
    p.add_argument("--items", type=int, default=40)
    p.add_argument("--present", type=float, default=0.12)
    p.add_argument("--delay", type=float, default=0.16)
    p.add_argument("--trials", type=int, default=3)
    p.add_argument("--out", default="recall.npz")
    args = p.parse_args()
    np.random.seed(args.seed)
    vocab = np.random.default_rng(args.seed).normal(size=(args.items, args.dims))
    vocab *= 18.0 / np.linalg.norm(vocab, axis=1, keepdims=True)
    net, pops = memory_network(args.seed, args.dims, args.neurons, args.stages)
    t0 = time.time()
    log.info("built %d ensembles, %d connections in %.2fs", *Builder(net).build(), time.time() - t0)
    sim = Simulator(net, pops)
    cos, traces, steps, t0 = [], [], 0, time.time()
    for trial in range(args.trials):
        item = vocab[trial]
        for phase, secs in ((item, args.present), (0.0, args.delay)):
            for _ in range(int(secs / sim.dt)):
                out = sim.step(phase)
                steps += 1
        sims = vocab @ out / (np.linalg.norm(vocab, axis=1) * np.linalg.norm(out))
        cos.append(float(sims[trial]))
        traces.append(out)
        log.info("trial %d similarity %.3f rank %d (%.0f steps/s)", trial, cos[-1], int((sims > sims[trial]).sum()),
                 steps / (time.time() - t0))
    np.savez(args.out, traces=np.array(traces))
    with open("summary.json", "w") as f:
        json.dump({"similarity": cos, "spikes": sim.spikes, "sim_sec": time.time() - t0}, f, indent=1)
    print(f"similarity {np.mean(cos):.8f} " + " ".join(f"{k}={sim.spikes[k]}" for k in ("stimulus", "memory", "output")))


if __name__ == "__main__":
    main()
