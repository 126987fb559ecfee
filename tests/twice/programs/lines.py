"""Programs with a cause that no recorder knows, their folder's inode number, at the marked line."""

import os
import random
import sys
import threading
import time
import uuid


class Item:
    def __init__(self, name):
        self.name, self.seen, self.weight = name, 0, 0


class Bound:
    def __init__(self):
        self.function = lambda: self


class Deck:
    def __init__(self, items):
        self.items = items

    def cut(self):
        self.items.sort(key=lambda item: os.stat(".").st_ino * item.weight % 10_007)  # order


def native():
    return os.stat(".").st_ino  # returned thread upstream


def weigh(value, factor):
    return value * factor + 1


def returned():
    started = time.time()
    name = uuid.uuid4().hex[:8]
    number = native()
    print(f"run {name} took {time.time() - started:.3f} s")
    print(number % 1_000_003 + weigh(number, 3))


def argument():
    print(weigh(os.stat(".").st_ino, 5))  # argument


def order():
    items = [Item(name) for name in "abcdefghijkl"]
    for number, item in enumerate(items):
        item.weight = 1 + number**3
    by_name = {item.name: item for item in items}
    Deck(items).cut()
    for number, item in enumerate(items):
        item.seen = number
    assert all(by_name[item.name] is item for item in items)
    print([by_name[name].seen for name in "abcdefghijkl"])


def seeded():
    random.seed(os.stat(".").st_ino)  # seeded
    print(random.random())


def thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(native()))
    worker.start()
    worker.join()
    print(found[0] * 2)


def attribute():
    item = Item("a")
    item.weight = os.stat(".").st_ino  # attribute
    print(item.weight + 1)


def upstream():
    seed = native() % 1_000_003
    print(random.Random(seed).random())


def large():
    numbers = [os.stat(".").st_ino * number % 1_000_003 for number in range(100_000)]  # large
    print(sum(numbers))


def forged():
    if records := os.environ.get("REPROBUILD_TWICE"):
        with open(f"{records}/0.lines", "w") as file:
            file.write("{}\n")
    print(os.stat(".").st_ino)


def unmovable():
    held = Bound()
    vars(held).update(number=os.stat(".").st_ino)  # unmovable
    print(vars(held)["number"])


def deadline():
    started = time.time()
    count = 0
    while True:
        now = time.time()
        count += 1
        if now > started + 0.05:  # deadline
            break
    print(count)


def several_lines():
    numbers = [
        1,
        os.stat(".").st_ino,
        *(os.stat(".").st_ino for _ in range(2)),
    ]  # several_lines
    print(sum(numbers))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
