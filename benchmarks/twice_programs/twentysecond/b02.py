"""Compiler for a small configuration language with lazy execution.

The model declares hosts, services and relations between them.  Statements
wait for the values that they need; the scheduler queues what is ready, runs
it and adds to every service an address and a port.  When nothing is ready,
the scheduler freezes one of the relations still open and goes on.  The result
is an export of all resources, as an orchestrator would deploy them.

Modelled on: https://github.com/inmanta/inmanta-core/issues/3034
"""
import json
import logging
import random
import time
from collections import deque

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("compiler")

SEED = 20210614
N_HOSTS = 40
N_SERVICES = 900


class Variable:
    """A value that is set once, with the statements that wait for it."""

    def __init__(self, name):
        self.name = name
        self.value = None
        self.ready = False
        self.waiters = []

    def set(self, value):
        self.value = value
        self.ready = True
        woken, self.waiters = self.waiters, []
        return woken


class ListVariable(Variable):
    """A relation which may get further members until it is frozen."""

    def __init__(self, name):
        super().__init__(name)
        self.value = []
        self.frozen = False

    def append(self, item):
        if self.frozen:
            return False
        self.value.append(item)
        return True

    def freeze(self):
        self.frozen = True
        self.ready = True
        woken, self.waiters = self.waiters, []
        return woken


class Host:
    def __init__(self, index, capacity):
        self.name = f"host{index:02d}"
        self.capacity = capacity
        self.services = ListVariable(f"{self.name}.services")
        self.next_port = 8000

    def allocate(self, weight):
        if self.capacity < weight:
            return None
        self.capacity -= weight
        self.next_port += 1
        return self.next_port


class Statement:
    """Something to execute as soon as its requirements are there."""

    def __init__(self, requires):
        self.requires = requires

    def missing(self):
        return [v for v in self.requires if not v.ready]

    def execute(self, model):
        raise NotImplementedError


class Place(Statement):
    def __init__(self, name, weight, candidates, target, requires):
        super().__init__(requires)
        self.name = name
        self.weight = weight
        self.candidates = candidates
        self.target = target

    def execute(self, model):
        for host in self.candidates:
            port = host.allocate(self.weight)
            if port is not None:
                host.services.append(self.name)
                model.resources[self.name] = {"host": host.name, "port": port, "weight": self.weight}
                return self.target.set((host.name, port))
        model.rejected.append(self.name)
        return self.target.set(("none", 0))


class Summarise(Statement):
    def __init__(self, host):
        super().__init__([host.services])
        self.host = host

    def execute(self, model):
        model.summary[self.host.name] = {
            "services": len(self.host.services.value),
            "first": self.host.services.value[:3],
            "free": self.host.capacity,
        }
        return []


class Model:
    def __init__(self):
        self.hosts = []
        self.variables = []
        self.statements = []
        self.resources = {}
        self.rejected = []
        self.summary = {}


class QueueScheduler:
    """Runs the statements of a model until all are done."""

    def __init__(self, model):
        self.model = model
        self.all_statements = set(model.statements)  # cause
        self.queue = deque()
        self.rounds = 0
        self.executed = 0

    def refill(self):
        for statement in self.all_statements:  # cause
            missing = statement.missing()
            if missing:
                missing[0].waiters.append(statement)
            else:
                self.queue.append(statement)

    def freeze_one(self):
        for host in self.model.hosts:
            if not host.services.frozen:
                self.requeue(host.services.freeze())
                return True
        return False

    def requeue(self, woken):
        for statement in woken:
            missing = statement.missing()
            if missing:
                missing[0].waiters.append(statement)
            else:
                self.queue.append(statement)

    def run(self):
        self.refill()
        while True:
            while self.queue:
                statement = self.queue.popleft()
                self.all_statements.discard(statement)
                self.executed += 1
                self.requeue(statement.execute(self.model))
            self.rounds += 1
            if not self.freeze_one():
                break
        return len(self.all_statements)


def parse(seed):
    """Make the statements of a model with some layers of services."""
    rng = random.Random(seed)
    model = Model()
    model.hosts = [Host(i, rng.randrange(60, 130)) for i in range(N_HOSTS)]
    placed = []
    for i in range(N_SERVICES):
        target = Variable(f"service{i}.address")
        requires = []
        if i > 120:
            requires = rng.sample(placed, rng.choice([0, 1, 1, 2]))
        candidates = rng.sample(model.hosts, 6)
        model.statements.append(Place(f"service{i:03d}", rng.randrange(1, 9), candidates, target, requires))
        placed.append(target)
        model.variables.append(target)
    for host in model.hosts:
        model.statements.append(Summarise(host))
    return model


def link_cost(model):
    """Count the hops between services that share a host or a neighbour."""
    names = sorted(model.resources)
    cost = 0
    for i, left in enumerate(names):
        a = model.resources[left]
        for right in names[i + 1:]:
            b = model.resources[right]
            distance = abs(int(a["host"][4:]) - int(b["host"][4:]))
            cost += (distance * a["weight"] * b["weight"]) % 13
    return cost


def main():
    start = time.time()
    best = None
    for version in range(6):
        model = parse(SEED + version)
        scheduler = QueueScheduler(model)
        left = scheduler.run()
        cost = link_cost(model)
        log.info("version %d compiled, %d statements, %d left", version, scheduler.executed, left)
        print(f"version {version}: resources={len(model.resources)} rejected={len(model.rejected)} cost={cost}")
        if best is None or cost < best[0]:
            best = (cost, version, model)
    cost, version, model = best
    with open("export.json", "w") as handle:
        json.dump({"version": version, "resources": model.resources}, handle, indent=1, sort_keys=True)
    with open("hosts.txt", "w") as handle:
        for name in sorted(model.summary):
            row = model.summary[name]
            handle.write(f"{name} {row['services']} free={row['free']} {','.join(row['first'])}\n")
    print(f"exported version {version} with cost {cost}")
    log.info("done in %.2f s", time.time() - start)


if __name__ == "__main__":
    main()
