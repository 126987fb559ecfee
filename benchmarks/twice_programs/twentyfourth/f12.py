"""Maintenance planner for a data centre with a job scheduler.

Jobs are added to a scheduler with a run date on a simulated clock; when a date
comes the due jobs compete for two crews and a stock of spare parts.  The
journal of the week and the state of the machines are written at the end.

Modelled on: https://github.com/agronholm/apscheduler/issues/325
"""
import csv
import heapq
import json
import logging
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

log = logging.getLogger("planner")
START = datetime(2022, 5, 2, 6, 0)


@dataclass
class Job:
    id: str
    run_date: datetime
    func: object
    args: tuple
    name: str


class MemoryJobStore:
    """Keeps jobs sorted by their date."""

    def __init__(self):
        self._jobs = []

    def add(self, job):
        heapq.heappush(self._jobs, (job.run_date, job.id, job))

    def due(self, now):
        found = []
        while self._jobs and self._jobs[0][0] <= now:
            found.append(heapq.heappop(self._jobs)[-1])
        return found

    def next_date(self):
        return self._jobs[0][0] if self._jobs else None

    def __len__(self):
        return len(self._jobs)


class Scheduler:
    def __init__(self, start):
        self.now = start
        self.store = MemoryJobStore()

    def add_job(self, func, run_date, args=(), name=None, id=None):
        job_id = id or uuid4().hex  # cause
        job = Job(job_id, run_date, func, tuple(args), name or func.__name__)
        self.store.add(job)
        return job

    def run_until(self, end):
        """Move the clock from date to date and run what is due."""
        runs = 0
        while True:
            date = self.store.next_date()
            if date is None or date > end:
                self.now = end
                return runs
            self.now = date
            for job in self.store.due(date):
                job.func(*job.args)
                runs += 1


class Machine:
    def __init__(self, name, wear):
        self.name = name
        self.wear = wear
        self.repaired = 0
        self.down = 0


class Plant:
    """Machines, crews, parts, and the journal."""

    def __init__(self, seed, machines=60):
        self.rng = random.Random(seed)
        self.machines = [Machine(f"M{i:03d}", self.rng.uniform(0.0, 0.6)) for i in range(machines)]
        self.scheduler = Scheduler(START)
        self.crews = [START, START]
        self.parts = 40
        self.journal = []

    def note(self, what, machine, detail=""):
        self.journal.append((self.scheduler.now.isoformat(" "), what, machine.name, detail))

    def plan_week(self):
        for day in range(7):
            for slot, hour in enumerate((6, 12, 18)):
                date = START + timedelta(days=day, hours=hour - 6)
                for number, machine in enumerate(self.machines):
                    if (number + day + slot) % 3 == 0:
                        self.scheduler.add_job(self.inspect, date, [machine])
        for day in range(1, 7, 2):
            self.scheduler.add_job(self.delivery, START + timedelta(days=day, hours=1), [25])

    def delivery(self, count):
        self.parts = min(80, self.parts + count)
        log.info("delivery on %s", self.scheduler.now.date())

    def inspect(self, machine):
        machine.wear += 0.02 + 0.1 * self.rng.random()
        if machine.wear > 0.5:
            self.note("order", machine, f"wear {machine.wear:.3f}")
            self.scheduler.add_job(self.repair, self.scheduler.now + timedelta(hours=2), [machine])

    def repair(self, machine):
        crew = min(range(len(self.crews)), key=lambda c: (self.crews[c], c))
        if self.parts == 0 or self.crews[crew] > self.scheduler.now + timedelta(hours=4):
            machine.down += 1
            self.note("postponed", machine)
            return
        hours = 0.5 + machine.wear
        self.crews[crew] = max(self.crews[crew], self.scheduler.now) + timedelta(hours=hours)
        self.parts -= 1
        machine.wear *= 0.2
        machine.repaired += 1
        self.note("repaired", machine, f"crew {crew}")


def simulate(seed):
    plant = Plant(seed)
    plant.plan_week()
    runs = plant.scheduler.run_until(START + timedelta(days=7))
    return plant, runs


def write_plant(plant, seed):
    with open(f"journal_{seed}.csv", "w", newline="") as handle:
        csv.writer(handle).writerows(plant.journal)
    state = {m.name: {"wear": round(m.wear, 6), "repaired": m.repaired, "down": m.down} for m in plant.machines}
    with open(f"state_{seed}.json", "w") as handle:
        json.dump(state, handle, indent=1)


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    down = []
    for seed in range(1, 221):
        plant, runs = simulate(seed)
        down.append(sum(m.down for m in plant.machines))
        if seed <= 5:
            write_plant(plant, seed)
            fixed = sum(m.repaired for m in plant.machines)
            wear = sum(m.wear for m in plant.machines) / len(plant.machines)
            print(f"site {seed}: {runs} jobs, {fixed} repairs, {down[-1]} postponed, mean wear {wear:.4f}")
    print(f"postponed per site and week: {sum(down) / len(down):.3f}")


if __name__ == "__main__":
    main()
