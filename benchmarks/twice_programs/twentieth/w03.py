"""Underwater acoustic network simulator with concurrent agents.

Every node runs one agent that beacons and relays data packets over a shared
acoustic medium; virtual time advances in milliseconds and the agents due in
the same instant are executed on a pool of threads. Writes the per-node counts
of transmissions and receptions and the delivery matrix.

Modelled on: https://github.com/org-arl/fjage/issues/426
"""
import csv
import json
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

ROOT_SEED = 20260717
N_NODES = 22
AREA_M = 4200.0
SOUND_SPEED = 1500.0
HORIZON_MS = 700_000
SLOT_MS = 25
FRAME_MS = {"data": 260, "beacon": 90}
RANGE_M = 2200.0


def agent_rng(name):
    """Random stream of one agent, derived from the root seed and its name."""
    return np.random.default_rng([ROOT_SEED, *name.encode()])


@dataclass
class Frame:
    src: int
    kind: str
    start_ms: int
    serial: int
    power_db: float
    hops: int = 0
    payload: tuple = ()


@dataclass
class Counters:
    tx: int = 0
    rx: int = 0
    collisions: int = 0
    by_source: dict = field(default_factory=lambda: defaultdict(int))


class Scheduler:
    """Virtual clock: a map from an instant to the agents to wake at it."""

    def __init__(self):
        self.now = 0
        self._due = defaultdict(list)

    def wake(self, at_ms, agent):
        self._due[at_ms].append(agent)

    def next_instant(self):
        return min(self._due) if self._due else None

    def pop(self, at_ms):
        self.now = at_ms
        return sorted(self._due.pop(at_ms), key=lambda a: a.node)


class Medium:
    """Shared channel. A receiver that is locked onto a frame drops the others."""

    def __init__(self, positions):
        self.positions = positions
        delta = positions[:, None, :] - positions[None, :, :]
        self.distance = np.sqrt((delta ** 2).sum(-1))
        self.delay_ms = np.round(self.distance / SOUND_SPEED * 1000 / SLOT_MS).astype(int) * SLOT_MS
        self.loss_db = 15 * np.log10(np.maximum(self.distance, 1.0)) + 0.004 * self.distance
        self._lock = threading.Lock()
        self._outbox = []
        self._arrivals = defaultdict(list)
        self._busy_until = np.zeros(len(positions), dtype=int)

    def transmit(self, frame):
        with self._lock:
            self._outbox.append(frame)  # cause

    def flush(self):
        """Put the frames sent in this instant on the water."""
        frames, self._outbox = self._outbox, []  # cause
        for frame in frames:
            self._busy_until[frame.src] = max(self._busy_until[frame.src],
                                              frame.start_ms + FRAME_MS[frame.kind])
            for node in range(len(self.positions)):
                if node != frame.src and self.distance[frame.src, node] < RANGE_M:
                    at = frame.start_ms + int(self.delay_ms[frame.src, node])
                    self._arrivals[at].append((node, frame))

    def arrivals(self, now):
        return self._arrivals.pop(now, [])

    def next_arrival(self):
        return min(self._arrivals) if self._arrivals else None

    def receive(self, node, frame, now):
        """True when the receiver was idle and locks onto this frame."""
        if now < self._busy_until[node]:
            return False
        self._busy_until[node] = now + FRAME_MS[frame.kind]
        return frame.power_db - self.loss_db[frame.src, node] > 108.0


class Agent:
    def __init__(self, node, scheduler, medium):
        self.node = node
        self.name = f"node{node:02d}"
        self.rng = agent_rng(self.name)
        self.scheduler = scheduler
        self.medium = medium
        self.count = Counters()
        self.serial = 0
        self.template = self.rng.normal(size=1024 + 256 * (node % 4))

    def start(self):
        self.scheduler.wake(SLOT_MS * int(self.rng.integers(1, 40)), self)

    def modulate(self):
        """Peak power of the frame after pulse shaping."""
        symbols = self.rng.choice([-1.0, 1.0], size=len(self.template))
        spectrum = np.fft.rfft(symbols) * np.conj(np.fft.rfft(self.template))
        wave = np.fft.irfft(spectrum, n=len(self.template))
        return float(np.max(np.abs(wave)) / np.sqrt(len(wave)))

    def on_wake(self):
        """Send a frame and choose the time of the next one."""
        now = self.scheduler.now
        kind = "data" if self.rng.random() < 0.6 else "beacon"
        power = 180.0 + 2.0 * self.modulate()
        self.serial += 1
        self.count.tx += 1
        self.medium.transmit(Frame(self.node, kind, now, self.serial, power))
        gap = int(self.rng.geometric(0.045 if kind == "data" else 0.03))
        return now + SLOT_MS * (8 + gap)

    def on_frame(self, frame, now):
        if self.medium.receive(self.node, frame, now):
            self.count.rx += 1
            self.count.by_source[frame.src] += 1
        else:
            self.count.collisions += 1


class Simulator:
    def __init__(self, n_nodes, workers=4):
        layout = np.random.default_rng(ROOT_SEED)
        self.medium = Medium(layout.uniform(0, AREA_M, (n_nodes, 2)))
        self.scheduler = Scheduler()
        self.agents = [Agent(i, self.scheduler, self.medium) for i in range(n_nodes)]
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="agent")
        self.instants = 0

    def run(self, horizon_ms):
        for agent in self.agents:
            agent.start()
        while True:
            candidates = [t for t in (self.scheduler.next_instant(), self.medium.next_arrival())
                          if t is not None]
            now = min(candidates, default=None)
            if now is None or now > horizon_ms:
                break
            self.instants += 1
            for node, frame in self.medium.arrivals(now):
                self.agents[node].on_frame(frame, now)
            if self.scheduler.next_instant() == now:
                self.step(self.scheduler.pop(now))
        self.pool.shutdown()

    def step(self, due):
        """Run all agents of one instant, wait for them, then send the frames."""
        jobs = [self.pool.submit(agent.on_wake) for agent in due]
        wait(jobs)
        for agent, job in zip(due, jobs):
            self.scheduler.wake(job.result(), agent)
        self.medium.flush()


def report(sim, elapsed):
    tx = sum(a.count.tx for a in sim.agents)
    rx = sum(a.count.rx for a in sim.agents)
    lost = sum(a.count.collisions for a in sim.agents)
    print(f"simulated {HORIZON_MS / 1000:.0f} s of network time ({sim.instants} instants) "
          f"in {elapsed:.2f} s")
    print(f"transmissions {tx}  receptions {rx}  collisions {lost}  "
          f"delivery ratio {rx / max(1, rx + lost):.6f}")
    with open("nodes.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["node", "x", "y", "tx", "rx", "collisions"])
        for agent in sim.agents:
            x, y = sim.medium.positions[agent.node]
            out.writerow([agent.name, f"{x:.2f}", f"{y:.2f}", agent.count.tx, agent.count.rx,
                          agent.count.collisions])
    matrix = np.zeros((len(sim.agents), len(sim.agents)), dtype=int)
    for agent in sim.agents:
        for src, n in agent.count.by_source.items():
            matrix[src, agent.node] = n
    np.save("delivery.npy", matrix)
    return {"tx": tx, "rx": rx, "collisions": lost, "delivery_ratio": rx / max(1, rx + lost)}


def main():
    summary = {}
    start = time.perf_counter()
    sim = Simulator(N_NODES)
    print(f"{N_NODES} nodes, {int((sim.medium.distance < RANGE_M).sum() - N_NODES)} links in range")
    sim.run(HORIZON_MS)
    summary["network"] = report(sim, time.perf_counter() - start)
    busiest = max(sim.agents, key=lambda a: (a.count.rx, -a.node))
    summary["busiest"] = {"node": busiest.name, "rx": busiest.count.rx}
    print(f"busiest receiver {busiest.name}: {busiest.count.rx} frames")
    with open("summary.json", "w") as fh:
        json.dump(summary, fh, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
