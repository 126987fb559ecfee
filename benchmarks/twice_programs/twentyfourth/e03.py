"""Item randomizer of a small adventure game with a route search.

Places the key items of the game in the item slots so that the game can be
completed.  Many candidate placements are tried; each try has a generator of
its own, derived from the seed of the game, and the tries are spread over a few
worker threads.  Writes the spoiler log and the game file for the placement.

Modelled on: https://github.com/jangler/oracles-randomizer/issues/25
"""
import hashlib
import json
import logging
import random
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

log = logging.getLogger("randomizer")

SEED = 25
N_WORKERS = 4
N_AREAS = 26
ITEMS = ["sword", "shield", "feather", "hook", "bombs", "flute", "boots", "gloves",
         "lantern", "flippers", "rod", "cape", "mirror", "shovel"]


class World:
    """Areas joined by exits that may need items; slots lie in the areas."""

    def __init__(self, seed):
        rnd = random.Random(seed)
        self.exits = {area: [] for area in range(N_AREAS)}
        for area in range(1, N_AREAS):
            source = rnd.randrange(max(0, area - 5), area)
            need = tuple(sorted(rnd.sample(ITEMS, rnd.choice([0, 0, 1, 1, 2]))))
            self.exits[source].append((area, need))
        for _ in range(12):
            source, target = rnd.sample(range(N_AREAS), 2)
            need = tuple(sorted(rnd.sample(ITEMS, 2)))
            self.exits[source].append((target, need))
        self.slots = [(area, n) for area in range(N_AREAS) for n in range(2)]
        self.goal = N_AREAS - 1

    def explore(self, placement):
        """Areas in reach with all items that can be collected; and rounds."""
        owned, reached, rounds = set(), {0}, 0
        while True:
            rounds += 1
            before = (len(owned), len(reached))
            frontier = sorted(reached)
            while frontier:
                area = frontier.pop()
                for target, need in self.exits[area]:
                    if target not in reached and all(item in owned for item in need):
                        reached.add(target)
                        frontier.append(target)
            for slot, item in placement.items():
                if slot[0] in reached:
                    owned.add(item)
            if (len(owned), len(reached)) == before:
                return reached, owned, rounds


class Attempt:
    """One try: random placement, improved by swaps until the goal is in reach."""

    def __init__(self, world, seed, number, stop):
        self.world = world
        self.number = number
        self.stop = stop
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        self.rnd = random.Random(digest)

    def score(self, placement):
        reached, owned, rounds = self.world.explore(placement)
        return len(reached) + 2 * len(owned), rounds

    def run(self):
        slots = self.rnd.sample(self.world.slots, len(ITEMS))
        placement = dict(zip(slots, ITEMS))
        best, rounds = self.score(placement)
        full = N_AREAS + 2 * len(ITEMS)
        for step in range(20000):
            if self.stop.is_set():
                return None
            if best >= full and rounds >= 7:
                return {"attempt": self.number, "steps": step, "rounds": rounds, "placement": placement}
            candidate = dict(placement)
            item = candidate.pop(self.rnd.choice(sorted(candidate)))
            free = [slot for slot in self.world.slots if slot not in candidate]
            candidate[self.rnd.choice(free)] = item
            value, length = self.score(candidate)
            if value >= best or self.rnd.random() < 0.02:
                placement, best, rounds = candidate, value, length
        return None


def search_route(world, seed, n_workers=N_WORKERS):
    """Run attempts in the pool until one of them has found a placement."""
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=n_workers) as pool:
        numbers = iter(range(10 ** 6))
        pending = {pool.submit(Attempt(world, seed, next(numbers), stop).run) for _ in range(n_workers)}
        while True:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)  # cause
            found = [future.result() for future in done if future.result() is not None]
            if found:
                stop.set()
                return min(found, key=lambda route: route["attempt"])
            for _ in done:
                pending.add(pool.submit(Attempt(world, seed, next(numbers), stop).run))


def spoiler(route):
    """Lines of the spoiler log, by area."""
    lines = []
    for (area, slot), item in sorted(route["placement"].items()):
        lines.append("area %02d slot %d: %s" % (area, slot, item))
    return lines


def game_bytes(world, route):
    """The patched item table of the game file."""
    table = bytearray(len(world.slots))
    for i, slot in enumerate(world.slots):
        item = route["placement"].get(slot)
        table[i] = 0 if item is None else ITEMS.index(item) + 1
    return bytes(table)


def make_game(number):
    seed = SEED * 1000 + number
    world = World(seed)
    start = time.perf_counter()
    route = search_route(world, seed)
    log.info("game %d: search took %.2f s", number, time.perf_counter() - start)
    return world, route


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    index = []
    for number in range(1, 11):
        world, route = make_game(number)
        with open("spoiler_%d.txt" % number, "w") as handle:
            handle.write("\n".join(spoiler(route)) + "\n")
        data = game_bytes(world, route)
        with open("game_%d.bin" % number, "wb") as handle:
            handle.write(data)
        index.append({"game": number, "rounds": route["rounds"], "steps": route["steps"],
                      "sha": hashlib.sha256(data).hexdigest()[:16]})
        print("game %d: placed %d items, %d rounds, sha %s" % (number, len(route["placement"]),
                                                              route["rounds"], index[-1]["sha"]))
    with open("index.json", "w") as handle:
        json.dump(index, handle, indent=1)


if __name__ == "__main__":
    main()
