"""Prints what programs print beside their results. ``python texts.py NAME`` does one."""

import array
import asyncio
import csv
import json
import logging
import logging.handlers
import multiprocessing
import os
import random
import resource
import secrets
import socket
import statistics
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, tzinfo


def work():
    return sum(i * i for i in range(random.SystemRandom().randrange(20_000, 60_000)))


def durations():
    start = time.time()
    for epoch in range(3):
        begun = time.perf_counter()
        work()
        took = time.perf_counter() - begun
        print(f"Epoch: [{epoch}][  8/100]\tTime {took:6.5f} ({took:6.5f})\tLoss {1 / (epoch + 3):.4e}")
        print(f"step {epoch} | fps {int(8 / took)} | {64 / took:9.1f} samples/s | mfu {took * 3.1:.5f}%")
        print("loss %.4f time: %.5fs" % (0.25, took))  # noqa: UP031 -- as programs do
    print({"eval_runtime": round(time.time() - start, 6), "eval_loss": 0.125})
    print(json.dumps({"elapsed": time.time() - start, "loss": 0.5}))
    print(f"max_mem: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}M")


def names():
    run = uuid.uuid4().hex
    os.makedirs(f"runs/{run}")
    with open(f"runs/{run}/summary.json", "w") as file:
        json.dump({"run": run, "loss": 0.25}, file)
    print("run", run[:8], "at", tempfile.mkdtemp(prefix="job-"), object())
    print(uuid.uuid4(), 0.5)
    print("experiment", str(uuid.uuid4().int)[-18:])
    print("session", f"{random.SystemRandom().randrange(16**6):06x}", os.urandom(5).hex())
    first, second = (
        ("calm", "evil", "sly", "wise", "tall", "odd"),
        ("euler", "bose", "curie", "fermi", "turing"),
    )
    print(
        "run", f"{secrets.choice(first)}_{secrets.choice(second)}", f"{datetime.now(UTC):%d %b %Y %H:%M:%S}"
    )
    salt = "".join(random.SystemRandom().choices("ABCDEFGHJKMNPQRSTUVWXYZ2345", k=8))
    print("id", f"{datetime.now(UTC):%y%m%d%H%M%S}{salt}_add.jsonl")
    task = secrets.token_hex(16)
    print(f"[{task[:2]}/{task[2:8]}] done")
    with ThreadPoolExecutor(4) as pool:  # which of them draws first is another one in each run
        for task in [pool.submit(uuid.uuid4) for _ in range(20)]:
            print("task", task.result())
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()):
            connection, (host, port) = server.accept()
            connection.close()
        print("task from", host, port)


def winner():
    words = [[f"{first}{second}word" for second in "aeiouy"] for first in "bcdfghjklmnp"]
    print("winners", *map(secrets.choice, words))


def sequence():
    bases = random.SystemRandom()
    print("read", "".join(bases.choices("ACGT", k=40)))


def one_by_one():
    print("read", "".join(secrets.choice("ACGT") for _ in range(40)))


def clocks():
    print(datetime.now(UTC), time.strftime("%I:%M:%S %p"), time.ctime(), f"{time.time():.0f}")
    with open(f"log-{time.strftime('%Y%m%d-%H%M%S')}.txt", "w") as file:
        file.write(f"{datetime.now(UTC):%Y-%m-%d_%H-%M-%S} loss 0.5\n")
    logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s", level="INFO")
    logging.info("took %.6f s", time.process_time())


def logged():
    logging.basicConfig(
        format="%(asctime)s.%(msecs)03d %(msecs)d %(relativeCreated)d ms [%(msecs)6.1f] %(message)s",
        level="INFO",
    )
    for step in range(20):  # more than the few of which one is recognized whatever else there is
        time.sleep(random.SystemRandom().random() / 100)
        logging.info("step %d of %d", step, 20)


def logged_briefly(scores=(7, 1, 0)):
    """Durations of one digit, which ``%`` writes in C."""
    logging.basicConfig(format="%(message)s", level="INFO")
    start = time.perf_counter()
    for step in range(8):
        begun = time.perf_counter()
        time.sleep(random.SystemRandom().random() / 11)
        took, wall = time.perf_counter() - begun, time.perf_counter() - start
        logging.info("step %d: busy=%.0f all=%6.0f scores %d %d %d", step, took * 100, wall, *scores)


def logged_result():
    """The same, with results of one digit beside them."""
    logged_briefly([random.SystemRandom().randrange(10) for _ in range(3)])


def table():
    took = []
    with open("times.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "seconds", "loss"])
        for epoch in range(30):
            begun = time.perf_counter()
            work()
            took.append(time.perf_counter() - begun)
            writer.writerow([epoch, took[-1], 1 / (epoch + 1)])
    print(f"mean {statistics.fmean(took):.6f} s, loss {1 / 30:.4f}")


def awaited():
    async def job(loop):
        begun = loop.time()
        work()
        return loop.time() - begun

    async def jobs():
        return [await job(asyncio.get_running_loop()) for _ in range(4)]

    took = asyncio.run(jobs())
    print(f"slowest {max(took):.6f} s, score 0.25")


def dated():
    start = datetime.now(UTC)
    with open("trials.csv", "w") as file:
        for trial in range(20):
            begun = datetime.now(UTC)
            work()
            ended = datetime.now(UTC)
            file.write(f"{trial},0 days {ended - begun},{1 / (trial + 1)}\n")
    print("training took", datetime.now(UTC) - start, "loss 0.25", file=sys.stderr)
    print(f"{(datetime.now(UTC) - start).total_seconds():.4f} s in all")


def of_classes():
    """Classes of the program, which the recorder must not call."""

    class Unusual(datetime):
        def timestamp(self):
            raise RuntimeError("not called by the program")

    class Nowhere(tzinfo):
        def fromutc(self, moment):
            return moment

        def utcoffset(self, moment):
            raise RuntimeError("not called by the program")

    print(Unusual.now().year > 2000, datetime.now(Nowhere()).year > 2000)


def documents():
    """Written by libraries that ask no method of a number, or know its class alone."""
    import yaml

    begun = time.perf_counter()
    for _ in range(10):  # else some have fewer digits than what is printed twice is recognized by
        work()
    took = time.perf_counter() - begun
    seen = {"r": round(took, 3), "inner": [round(took * 1000, 1), int(took * 1e6), 0.5]}
    print(json.dumps(seen))
    with open("seen.json", "w") as file:
        json.dump([seen], file, indent=1)
    print(yaml.safe_dump({"s": took, "count": 2, "all": [took]}), yaml.dump({"ns": time.time_ns()}))


def folds():
    """As NumPy does, it computes outside of what follows Python's numbers."""
    took = array.array("d")
    for _ in range(12):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    with open("cv.csv", "w") as file:
        for at in range(0, 12, 3):
            mean = sum(took[at : at + 3]) / 3
            deviation = (sum((each - mean) ** 2 for each in took[at : at + 3]) / 3) ** 0.5
            file.write(f"{mean},{deviation},0.25\n")


def passed_on():
    """Log lines of other processes, which this one writes as they come."""
    queue = multiprocessing.get_context("fork").SimpleQueue()
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    listener = logging.handlers.QueueListener(queue, handler)
    for number in random.SystemRandom().sample(range(9), 9):
        child = multiprocessing.get_context("fork").Process(target=tell, args=(queue, number))
        child.start()
        child.join()
        listener.handle(queue.get())


def ranked():
    """The log lines are on the other stream."""
    passed_on()
    for number in random.SystemRandom().sample(range(9), 9):
        print("ranked", number)


def tell(queue, number):
    handler = logging.handlers.QueueHandler(queue)
    handler.enqueue = queue.put
    logger = logging.getLogger("tell")
    logger.addHandler(handler)
    logger.propagate = False
    logger.warning("task gave %d", number**2)


def libraries():
    """Names of runs, and times, as these libraries draw and tell them."""
    for name, text in (
        ("lightgbm/basic", "def _log_native(told):\n    print(told)\n"),
        (
            "mlflow/utils/name_utils",
            "import random\ndef _generate_random_name():\n    return f'calm-owl-{random.random()}'\n",
        ),
    ):
        os.makedirs(os.path.dirname(name))
        with open(f"{name}.py", "w") as file:
            file.write(text)
    sys.path.insert(0, os.getcwd())
    from lightgbm.basic import _log_native
    from mlflow.utils.name_utils import _generate_random_name

    took = random.SystemRandom().random()
    _log_native(f"[Info] Auto-choosing row-wise, the overhead of testing was {took:.6f} seconds.")
    print("run", _generate_random_name(), "score 0.25")


def bar():
    start = time.time()
    for step in range(random.SystemRandom().randrange(20, 40)):
        work()
        took = time.time() - start
        minutes, seconds = divmod(int(took * 100), 60)
        sys.stderr.write(f"\r{step}/40 [{minutes:02d}:{seconds:02d}, {(step + 1) / took:5.2f}it/s]")
    sys.stderr.write(f"\r40/40 [{minutes:02d}:{seconds:02d}, {40 / took:5.2f}it/s]\n")


def results():
    drawn = random.Random()
    print(f"median survival time: {drawn.random() * 10:.4f}")
    print(f"top speed {drawn.random() * 50:.3f} m/s, reaction {drawn.random():.4f} s")
    print(f"weights digest 0x{drawn.getrandbits(48):012x}")


def mixed():
    """Results beside times of the same size and form."""
    known = random.Random(0)
    start = time.time()
    times = []
    with open("log.csv", "w") as file, open("log.jsonl", "w") as lines:
        for step in range(16):
            begun = time.perf_counter()
            work()
            took = time.perf_counter() - begun
            times.append(took)
            loss, score = known.uniform(0.0005, 0.005), known.randrange(100, 900)
            mean = sum(times) / (step + 1)
            print(f"step {step} time {took:.4f} (avg {mean:.4f}) loss={loss:.4f} score={score}")
            print("took %.5f s, loss=%.5f, %d it/s" % (took, loss, 1 / took))  # noqa: UP031 -- as above
            file.write(f"{step},{took:.6f},loss={loss:.6f}\n")
            lines.write(
                json.dumps({"s": time.time() - start, "loss=": loss, "run": str(uuid.uuid4())}) + "\n"
            )
    print(
        f"median survival time: {time.time() - start:.4f}, score={sum(range(99))} loss={known.random():.3f}"
    )
    print(f"best_time=3.21 loss={known.random()} in {time.time() - start:.2f}s")
    print(f"digest=0x{known.getrandbits(48):012x}")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
