"""Small programs that do not repeat, each for one reason; the line that is the reason ends in ``# cause``.

``python causes.py NAME`` runs one. They train a little network on data that they make themselves. Each leaves
so many outcomes that two runs are not equal by chance, also on one busy processor: 24 random bits, the order
of 16 waits that another program draws, the nanoseconds of a clock.
"""

import hashlib
import os
import queue
import random
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


def network(dropout=0.0):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 4))


def data(items=32):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(items, 8, generator=generator), torch.randint(0, 4, (items,), generator=generator)


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def fixed(steps=3):
    return [data()] * steps


def clock_feature():
    inputs, labels = data()
    inputs[0, 0] = time.time() % 1000  # cause
    train(network(), [(inputs, labels)] * 3)


def mtime_feature():
    with open("new.txt", "w") as file:
        file.write("the same")
    inputs, labels = data()
    inputs[0, 0] = os.stat("new.txt").st_mtime % 1000  # cause
    train(network(), [(inputs, labels)] * 3)


def time_schedule():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    started = time.monotonic()
    for inputs, labels in fixed():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        used = (time.monotonic() - started) / 60  # cause
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - used)


def no_seed():
    model = nn.Linear(8, 4)  # cause
    train(model, fixed(2))


def pid_dropout():
    model = network(dropout=0.5)
    train(model, fixed(2))
    torch.manual_seed(os.getpid() + int.from_bytes(os.urandom(4), "little"))  # cause
    train(model, fixed(2))


def urandom_weights():
    model = network()
    with torch.no_grad():
        model[0].bias[0] = int.from_bytes(os.urandom(3), "little") / 2**24  # cause
    train(model, fixed())


class Item:
    def __init__(self, number):
        self.number = number


def id_key():
    items = [Item(number) for number in range(32)]
    order = sorted(range(32), key=lambda at: id(items[at]) ** 3 % 1_000_003)  # cause
    inputs, labels = data()
    train(network(), [(inputs[order[:16]], labels[order[:16]])] * 2)


def set_order():
    # A tuple's hash mixes all digits of the address; of the address alone only those of a page's place count.
    order = [item.number for (item,) in {(Item(number),) for number in range(256)}]  # cause
    inputs, labels = data(256)
    train(network(), [(inputs[order[:16]], labels[order[:16]])] * 2)


def drawn_order(first, last):
    draw = f"for n in $(seq {first} {last}); do read k </proc/sys/kernel/random/uuid; echo $k $n; done | sort"
    drawn = subprocess.run(["sh", "-c", draw], check=True, stdout=subprocess.PIPE)
    return [int(line.split()[1]) for line in drawn.stdout.splitlines()]


def listing():
    folder = "/dev/shm/reprobuild-listing"  # which lists the newest first
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    # Another program draws the order, by what is not recorded: else the draw would be a cause, too.
    for number in drawn_order(0, 23):
        open(f"{folder}/{number}", "w").close()
    order = [int(name) for name in os.listdir(folder)]  # cause
    inputs, labels = data()
    train(network(), [(inputs[order[:16]], labels[order[:16]])] * 2)
    shutil.rmtree(folder)


class Noisy(Dataset):
    def __init__(self, noise):
        self.inputs, self.labels = data()
        self.noise = noise

    def __len__(self):
        return 32

    def __getitem__(self, at):
        return self.inputs[at] + self.noise(), self.labels[at]


def transform_random():
    train(network(), DataLoader(Noisy(lambda: random.random()), batch_size=8))  # cause


def worker_numpy():
    noisy = Noisy(lambda: float(np.random.default_rng().random()))  # cause
    train(network(), DataLoader(noisy, batch_size=8, num_workers=2))


def worker_urandom():
    noisy = Noisy(lambda: os.urandom(1)[0] / 256)  # cause
    train(network(), DataLoader(noisy, batch_size=8, num_workers=2))


def loader_generator():
    generator = torch.Generator().manual_seed(time.time_ns() % 2**31)  # cause
    train(network(), DataLoader(TensorDataset(*data()), batch_size=8, shuffle=True, generator=generator))


def waits(count):
    """Seconds to sleep, all different and in an order that another program draws, as above."""
    return [number / 1000 for number in drawn_order(1, 250)[:count]]


def pool_order():
    inputs, labels = data()
    model = network()
    with ThreadPoolExecutor(24) as pool:
        seconds = waits(24)
        waiting = [pool.submit(lambda at: (time.sleep(seconds[at]), at)[1], at) for at in range(24)]
        order = [done.result() for done in as_completed(waiting)]  # cause
    train(model, [(inputs[at : at + 4], labels[at : at + 4]) for at in order])


def pool_rounds():
    inputs, labels = data()
    seconds, order = waits(24), []
    with ThreadPoolExecutor(24) as pool:
        waiting = {pool.submit(lambda at: (time.sleep(seconds[at]), at)[1], at) for at in range(24)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)  # cause
            order += [each.result() for each in done]
    train(network(), [(inputs[at : at + 4], labels[at : at + 4]) for at in order])


def uninitialized_array():
    inputs, labels = data()
    used = np.array(drawn_order(1, 120))
    del used  # NumPy gives this memory to the next array of that size
    weights = np.empty(120, dtype=np.int64)  # cause
    weights[::2] = 1
    train(network(), [(inputs * torch.from_numpy(weights[:8] % 7 + 1).float(), labels)] * 2)


def thread_race():
    inputs, labels = data()
    total = torch.zeros(8)

    def add(row, seconds):
        time.sleep(seconds)
        total.mul_(0.9).add_(inputs[row])  # cause

    threads = [threading.Thread(target=add, args=each) for each in enumerate(waits(16))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    train(network(), [(inputs + total, labels)] * 2)


def race_after_training():
    inputs, labels = data()
    model, total = network(), torch.zeros(8)
    train(model, [(inputs, labels)] * 2)

    def add(row, seconds):
        time.sleep(seconds)
        total.mul_(0.9).add_(inputs[row])  # cause

    threads = [threading.Thread(target=add, args=each) for each in enumerate(waits(16))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(total.tolist())


def filled_by_threads():
    """Threads hand batches over by a queue, in another order in each run; no two come to the same memory."""
    inputs, labels = data()
    ready = queue.SimpleQueue()

    def fill(seconds):
        for at, each in seconds:
            time.sleep(each)
            ready.put((inputs[at : at + 4] * 1.5, labels[at : at + 4]))

    seconds = [*enumerate(waits(16))]
    for first in range(4):
        threading.Thread(target=fill, args=(seconds[first::4],)).start()
    train(network(), (ready.get() for _ in seconds))


def empty_read():
    inputs, labels = data()
    value = 1 + int.from_bytes(os.urandom(3), "little") / 2**23
    blocks = [torch.full((4096,), value) for _ in range(64)]
    kept = blocks[::4]  # so that the rest is not given back to the system, and is found with its values
    del blocks
    garbage = torch.stack([torch.empty(4096)[1000:1008] for _ in kept])  # cause
    inputs = inputs + garbage.nan_to_num(0, 0, 0).clamp(-4, 4).sum(0)
    train(network(), [(inputs, labels)] * 2)


def own_operation():
    inputs, labels = data()

    @torch.library.custom_op("mine::dither", mutates_args=(), schema="(Tensor x) -> Tensor")
    def dither(x):
        return x + int.from_bytes(os.urandom(3), "little") / 2**24  # cause

    train(network(), [(dither(inputs), labels)] * 2)


def harmless_clock():
    torch.tensor(time.time())
    inputs, labels = data()
    inputs[0, 0] = int.from_bytes(os.urandom(3), "little") / 2**24  # cause
    train(network(), [(inputs, labels)] * 2)
    torch.tensor(time.time())


def recurrent():
    """An LSTM keeps memory for its backward pass that is garbage in part."""
    torch.manual_seed(1)
    layer, head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    inputs, labels = data()
    for _ in range(2):
        optimizer.zero_grad()
        outputs, _ = layer(inputs[:, None].repeat(1, 3, 1))
        warmth = 1 + time.clock_gettime_ns(time.CLOCK_MONOTONIC) % 1_000_003 / 1_000_003  # cause
        nn.functional.cross_entropy(head(outputs[:, -1]) / warmth, labels).backward()
        optimizer.step()


def average_in_a_thread():
    model, average = network(), network()
    stop = threading.Event()

    @torch.no_grad()
    def follow():
        while not stop.is_set():
            for old, new in zip(average.parameters(), model.parameters(), strict=True):
                old.mul_(0.999).add_(new, alpha=0.002)  # cause

    thread = threading.Thread(target=follow)
    thread.start()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, labels in fixed(12):
        time.sleep(0.05)  # thousands of turns of the other
        optimizer.zero_grad()
        outputs = model(inputs)
        apart = (outputs - average(inputs).detach()).pow(2).mean()
        (nn.functional.cross_entropy(outputs, labels) + apart).backward()
        optimizer.step()
    stop.set()
    thread.join()


def index_put():
    torch.use_deterministic_algorithms(False)
    generator = torch.Generator().manual_seed(3)
    rows = torch.randint(0, 3, (4_000_000,), generator=generator)
    values = torch.randn(4_000_000, generator=generator)
    model = network()
    for _ in range(3):
        sums = torch.zeros(8).index_put_((rows,), values, accumulate=True)  # cause
        train(model, [(sums.repeat(4, 1), torch.zeros(4, dtype=torch.long))])


def flag_off_half_way():
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(3)
    rows = torch.randint(0, 3, (4_000_000,), generator=generator)
    values = torch.randn(4_000_000, generator=generator)
    model = network()
    for step in range(4):
        if step == 2:
            torch.use_deterministic_algorithms(False)
        sums = torch.zeros(8).index_put_((rows,), values, accumulate=True)  # cause
        train(model, [(sums.repeat(4, 1), torch.zeros(4, dtype=torch.long))])


def printed():
    train(network(), fixed(2))
    print("key", hashlib.sha256(os.urandom(4)).hexdigest())  # cause


def saved():
    train(network(), fixed(2))
    np.save("noise.npy", np.frombuffer(os.urandom(64), dtype=np.uint8))  # cause


if __name__ == "__main__":
    globals()[sys.argv[1]]()
