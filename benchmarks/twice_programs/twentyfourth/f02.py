"""City bus fleet dispatching.

A fleet of buses serves stop requests on a grid city.  In every minute the
dispatcher hands new requests to idle buses, buses drive towards their targets,
and the waiting times of the passengers are collected per district.  The run
writes `waits.csv` (one row per passenger) and `fleet.json` (per bus totals).

Modelled on: https://stackoverflow.com/questions/3848091/set-iteration-order-varies-from-run-to-run
"""
import csv
import json
import logging
import random
import statistics

LOG = logging.getLogger("dispatch")
GRID = 40
MINUTES = 1500


class Request:
    """One passenger who waits at a stop."""

    def __init__(self, number, minute, stop, goal):
        self.number = number
        self.minute = minute
        self.stop = stop
        self.goal = goal
        self.picked = None
        self.done = None

    def wait(self):
        return self.picked - self.minute


class Bus:
    """A vehicle with a position and at most one passenger at a time."""

    def __init__(self, name, pos):
        self.name = name
        self.pos = pos
        self.request = None
        self.onboard = False
        self.driven = 0
        self.served = 0

    def assign(self, request):
        self.request = request
        self.onboard = False

    def target(self):
        return self.request.goal if self.onboard else self.request.stop

    def step(self, minute):
        """Drive two blocks towards the target; return True when free again."""
        for _ in range(2):
            x, y = self.pos
            tx, ty = self.target()
            if x != tx:
                self.pos = (x + (1 if tx > x else -1), y)
                self.driven += 1
            elif y != ty:
                self.pos = (x, y + (1 if ty > y else -1))
                self.driven += 1
            if self.pos == self.target():
                if not self.onboard:
                    self.onboard = True
                    self.request.picked = minute
                else:
                    self.request.done = minute
                    self.served += 1
                    self.request = None
                    return True
        return False


class Dispatcher:
    def __init__(self, buses):
        self.buses = list(buses)
        self.idle = set(self.buses)
        self.queue = []

    def submit(self, request):
        self.queue.append(request)

    def match(self):
        """Give each waiting request to the first idle bus within reach."""
        left = []
        for request in self.queue:
            chosen = None
            for bus in self.idle:  # cause
                reach = abs(bus.pos[0] - request.stop[0]) + abs(bus.pos[1] - request.stop[1])
                if reach <= 25:
                    chosen = bus
                    break
            if chosen is None:
                left.append(request)
            else:
                self.idle.remove(chosen)
                chosen.assign(request)
        self.queue = left

    def drive(self, minute):
        for bus in self.buses:
            if bus.request is not None and bus.step(minute):
                self.idle.add(bus)


def make_demand(rng):
    """Requests by minute, with a morning and an evening peak."""
    number = 0
    for minute in range(MINUTES - 120):
        peak = 0.55 if 420 < minute < 540 or 960 < minute < 1100 else 0.25
        for _ in range(2):
            if rng.random() < peak:
                stop = (rng.randrange(GRID), rng.randrange(GRID))
                goal = (rng.randrange(GRID), rng.randrange(GRID))
                if stop != goal:
                    yield Request(number, minute, stop, goal)
                    number += 1


def simulate(seed):
    rng = random.Random(seed)
    buses = [Bus(f"B{i:02d}", (rng.randrange(GRID), rng.randrange(GRID))) for i in range(24)]
    dispatcher = Dispatcher(buses)
    demand = list(make_demand(rng))
    LOG.info("%d requests, %d buses", len(demand), len(buses))
    pending = iter(demand)
    coming = next(pending, None)
    for minute in range(MINUTES):
        while coming is not None and coming.minute == minute:
            dispatcher.submit(coming)
            coming = next(pending, None)
        dispatcher.match()
        dispatcher.drive(minute)
    return demand, buses


def district(stop):
    return "NS"[stop[1] < GRID // 2] + "EW"[stop[0] < GRID // 2]


def report(demand, buses):
    with open("waits.csv", "w", newline="") as handle:
        out = csv.writer(handle)
        out.writerow(["request", "minute", "district", "wait"])
        for request in demand:
            if request.picked is not None:
                out.writerow([request.number, request.minute, district(request.stop), request.wait()])
    groups = {}
    for request in demand:
        if request.picked is not None:
            groups.setdefault(district(request.stop), []).append(request.wait())
    for name in sorted(groups):
        print(f"{name}: n={len(groups[name]):4d} mean wait {statistics.mean(groups[name]):6.2f} min")
    with open("fleet.json", "w") as handle:
        json.dump({b.name: {"served": b.served, "blocks": b.driven} for b in buses}, handle, indent=1)
    print("blocks driven:", sum(b.driven for b in buses))
    print("passengers served:", sum(b.served for b in buses))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    runs = [simulate(seed) for seed in range(11, 81)]
    for demand, buses in runs:
        report(demand, buses)


if __name__ == "__main__":
    main()
