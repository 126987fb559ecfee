"""Programs without torch, by the first argument."""

import random
import sys
import time

if sys.argv[1] == "same":
    print("done in", f"{time.perf_counter():.6f} s")
    with open("result.txt", "w") as file:
        file.write("42\n")
elif sys.argv[1] == "hang":
    print("waiting", flush=True)
    time.sleep(3600)
elif sys.argv[1] == "clock":
    random.seed(time.time_ns())
    print(random.random())
elif sys.argv[1] == "system":
    for _ in range(20):
        random.SystemRandom().randrange(33)
elif sys.argv[1] == "counts":  # how often it was run before: in the file of that name
    with open(sys.argv[2], "ab") as file:
        file.write(b"x")
        number = file.tell()
    how, at = sys.argv[3], int(sys.argv[4])
    if number == at:
        if how == "status":
            sys.exit(3)
        print("otherwise", file=sys.stderr if how == "stderr" else sys.stdout)
elif sys.argv[1] == "pool":
    from multiprocessing.pool import ThreadPool

    with ThreadPool(2) as pool:
        print(pool.map(abs, [-1, 2]))
elif sys.argv[1] == "outside":  # what it takes from outside, each kind at one line
    import asyncio
    import concurrent.futures
    import datetime
    import os
    import queue
    import sqlite3
    from multiprocessing.pool import ThreadPool

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(abs, -n) for n in range(3)]
        for done in concurrent.futures.as_completed(tasks):  # order as_completed
            done.result()
        concurrent.futures.wait(tasks)  # order concurrent.futures.wait
    with ThreadPool(2) as pool:
        list(pool.imap_unordered(abs, [1, 2]))  # order imap_unordered
    items = queue.Queue()
    items.put((1, object()))
    items.get()  # order Queue.get
    items.put(1)
    items.get(timeout=60)  # timeout Queue.get
    datetime.datetime.now(datetime.UTC)  # clock datetime.datetime.now

    async def given(number):
        return number

    async def gathered():
        for each in asyncio.as_completed([given(n) for n in range(2)]):  # order asyncio.as_completed
            await each

    asyncio.run(gathered())
    table = sqlite3.connect(":memory:")
    table.execute("create table t (a)")
    table.executemany("insert into t values (?)", [(n,) for n in range(3)])
    table.execute("select a from t order by random()").fetchall()  # entropy SQLite's random()
    [blob] = table.execute("select randomblob(40)").fetchone()  # entropy SQLite's randomblob()
    assert len(blob) == 40
    with open("/proc/meminfo") as file:  # machine what was read from /proc/meminfo
        file.read()
    os.path.getmtime(__file__)  # mtime os.path.getmtime
    os.system(f"sh {os.path.dirname(__file__)}/mixed.sh")
elif sys.argv[1] == "drawn":  # the kind and what it gave
    import concurrent.futures
    import os
    import secrets
    import tempfile
    import uuid
    from pathlib import Path

    print("draw", random.random(), random.sample(range(99), 3))
    print("entropy", os.urandom(4), uuid.uuid4(), secrets.token_hex(4), random.SystemRandom().random())
    print("process", os.getpid())
    print("address", id(object()), id(random))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        print("name", Path(tempfile.mkdtemp(dir=".")).name, Path(folder).name)
    for name in ("b", "a", "c"):
        Path(name).touch()
    print("listing", os.listdir("."), [entry.name for entry in os.scandir(".")])
    print("seed", random.Random().random())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(abs, -n) for n in range(9)]
        print("order", [done.result() for done in concurrent.futures.as_completed(tasks)])
        waiting, order = {pool.submit(abs, -n) for n in range(9)}, []
        cancelled = concurrent.futures.Future()
        cancelled.cancel()
        cancelled.set_running_or_notify_cancel()
        concurrent.futures.wait([cancelled])
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
            order += [each.result() for each in done]
        print("order", order)
    print("mtime", os.path.getmtime("a"))
    import subprocess

    script = Path(__file__).with_name("mixed.sh")
    print("commands", subprocess.check_output(["sh", str(script)]), Path("mixed.txt").read_text().split())
    print("clock", time.time(), time.perf_counter_ns())
elif sys.argv[1] == "varied":  # what the image holds still
    import locale
    import os
    from pathlib import Path

    what = sys.argv[2]
    for name in ("a", "b", "c"):
        Path(name).touch()
    if what == "listing":
        print([name for name in os.listdir(".") if len(name) == 1], len(list(Path().iterdir())))
    names = {"alpha", "beta", "gamma", "delta", "epsilon"}
    if what == "hashseed":
        print([name.upper() for name in names])
    if what == "threads":
        print(os.environ.get("OMP_NUM_THREADS"))
    if what == "locale":
        print(locale.getlocale(), time.strftime("%H", time.localtime(0)))
