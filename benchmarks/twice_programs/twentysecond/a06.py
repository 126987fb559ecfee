"""ensemblesim: discrete-event simulation of a team of robots built from components.

Every component has periodic processes (sensing, planning, moving, talking).  A
scheduler runs the processes in order of time and declared order.  The robots share
charging docks and a limited radio channel.  Writes ``trace.csv`` and ``robots.json``.

Modelled on: https://github.com/d3scomp/JDEECo/issues/147
"""
import csv
import heapq
import json
import logging
import math
import random

log = logging.getLogger("ensemblesim")

ARENA = 100.0
DOCKS = 3
RADIO_SLOTS = 4


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.free_docks = DOCKS
        self.radio = {}
        self.targets = [self._point() for _ in range(60)]
        self.collected = 0

    def _point(self):
        return (self.random.uniform(0, ARENA), self.random.uniform(0, ARENA))

    def claim_slot(self, now):
        used = self.radio.get(now, 0)
        if used >= RADIO_SLOTS:
            return False
        self.radio[now] = used + 1
        return True

    def nearest_target(self, x, y):
        return min(self.targets, key=lambda t: (math.hypot(t[0] - x, t[1] - y), t))

    def collect(self, target):
        self.targets.remove(target)
        self.targets.append(self._point())
        self.collected += 1


class Component:
    """Knowledge of one robot and the processes that work on it."""

    def __init__(self, name, world):
        self.name = name
        self.world = world
        self.x = world.random.uniform(0, ARENA)
        self.y = world.random.uniform(0, ARENA)
        self.battery = 100.0
        self.goal = None
        self.docked = False
        self.collected = 0
        self.lost_messages = 0
        self.heard = 0

    def sense(self, now):
        self.battery -= 0.2
        if self.goal is not None and self.goal not in self.world.targets:
            self.goal = None

    def plan(self, now):
        if self.docked:
            if self.battery >= 95:
                self.docked = False
                self.world.free_docks += 1
            return
        if self.battery < 30 and self.world.free_docks > 0:
            self.world.free_docks -= 1
            self.docked = True
            self.goal = None
        elif self.goal is None:
            self.goal = self.world.nearest_target(self.x, self.y)

    def move(self, now):
        if self.docked:
            self.battery = min(100.0, self.battery + 4.0)
            return
        if self.goal is None or self.battery <= 0:
            return
        dx, dy = self.goal[0] - self.x, self.goal[1] - self.y
        distance = math.hypot(dx, dy)
        step = 2.5 + self.world.random.gauss(0, 0.3)
        self.battery -= 0.5
        if distance <= step:
            self.x, self.y = self.goal
            if self.goal in self.world.targets:
                self.world.collect(self.goal)
                self.collected += 1
            self.goal = None
        else:
            self.x += dx / distance * step
            self.y += dy / distance * step

    def talk(self, now):
        if self.world.claim_slot(now):
            self.heard += 1
        else:
            self.lost_messages += 1


class Task:
    """A periodic process of a component."""

    def __init__(self, component, process, period, order):
        self.component = component
        self.process = process
        self.period = period
        self.order = order
        self.due = 0

    def __hash__(self):
        return hash((self.process, self.component))  # cause

    def __eq__(self, other):
        return self.process == other.process and self.component is other.component

    def __lt__(self, other):
        if self.due != other.due:
            return self.due < other.due
        if self.order != other.order:
            return self.order < other.order
        return hash(self) < hash(other)  # cause

    def execute(self, now):
        getattr(self.component, self.process)(now)


class Scheduler:
    def __init__(self):
        self.queue = []
        self.executed = 0

    def add(self, task):
        heapq.heappush(self.queue, task)

    def run(self, until, on_tick):
        last = 0
        while self.queue and self.queue[0].due < until:
            task = heapq.heappop(self.queue)
            if task.due // 100 > last // 100:
                on_tick(task.due)
            last = task.due
            task.execute(task.due)
            self.executed += 1
            task.due += task.period
            self.add(task)


def deploy(world, count):
    robots = [Component(f"robot-{i:02d}", world) for i in range(count)]
    scheduler = Scheduler()
    for robot in robots:
        scheduler.add(Task(robot, "sense", 5, 0))
        scheduler.add(Task(robot, "plan", 10, 1))
        scheduler.add(Task(robot, "move", 5, 2))
        scheduler.add(Task(robot, "talk", 20, 2))
    return robots, scheduler


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    world = World(seed=7)
    robots, scheduler = deploy(world, 14)
    rows = []

    def snapshot(now):
        rows.append((now, world.collected, world.free_docks,
                     round(sum(r.battery for r in robots) / len(robots), 4)))

    scheduler.run(70000, snapshot)
    log.info("executed %d tasks", scheduler.executed)
    with open("trace.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["time", "collected", "free_docks", "mean_battery"])
        writer.writerows(rows)
    state = {r.name: {"x": round(r.x, 4), "y": round(r.y, 4), "battery": round(r.battery, 3),
                      "collected": r.collected, "lost": r.lost_messages} for r in robots}
    with open("robots.json", "w") as fh:
        json.dump(state, fh, indent=2)
    print("targets collected:", world.collected)
    for name, row in state.items():
        print(name, row["collected"], row["lost"], row["battery"])


if __name__ == "__main__":
    main()
