"""Hands a number over from one thread to another, and prints whether that was followed.

``python handovers.py`` does each way that is followed; ``-`` before a name: it hands nothing over.
"""

import asyncio
import json
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool

from reprobuild_twice import handovers

counted = threading.Lock()
numbers = iter(range(1000))


def operation(*_):
    with counted:
        handovers.made()
        return next(numbers)


def beside(act):
    """Do it in a thread that goes on for a while."""

    def work():
        act()
        done.wait()

    threading.Thread(target=work, daemon=True).start()


done = threading.Event()


def by_queue(kind):
    handed = kind()
    beside(lambda: handed.put(operation()))
    return handed.get()


def by_event(*, asks):
    event, box = threading.Event(), []
    beside(lambda: (box.append(operation()), event.set()))
    if asks:
        while not event.is_set():
            time.sleep(0.001)
    else:
        event.wait()
    return box[0]


def by_condition(*, late, own_lock=False):
    lock = threading.Lock()
    condition, box = threading.Condition(lock if own_lock else None), []

    def work():
        made = operation()
        with condition:
            box.append(made)
            condition.notify_all()

    if not late:
        beside(work)
    with condition:
        if late:
            beside(work)
        condition.wait_for(lambda: box)
    return box[0]


def by_acquire():
    condition, box = threading.Condition(), []

    def work():
        condition.acquire()
        box.append(operation())
        condition.notify()
        condition.release()

    beside(work)
    condition.acquire()
    while not box:
        condition.wait()
    condition.release()
    return box[0]


def by_barrier():
    barrier, box = threading.Barrier(2), []
    beside(lambda: (box.append(operation()), barrier.wait()))
    barrier.wait()
    return box[0]


def by_semaphore():
    semaphore, box = threading.Semaphore(0), []
    beside(lambda: (box.append(operation()), semaphore.release()))
    semaphore.acquire()
    return box[0]


def by_pool(take):
    with ThreadPoolExecutor(2) as pool:
        return take(pool)


def by_thread_pool(take):
    with ThreadPool(2) as pool:
        return take(pool)


class Own(threading.Thread):
    def run(self):
        self.made = operation()


def by_join(*, asks):
    thread = Own()
    thread.start()
    if asks:
        while thread.is_alive():
            time.sleep(0.001)
    else:
        thread.join()
    return thread.made


def by_start():
    made, box = operation(), []
    thread = threading.Thread(target=lambda: box.append(handovers.is_over(made)))
    thread.start()
    thread.join()
    return box[0]


def by_loop(main):
    return asyncio.run(main())


async def executor():
    return await asyncio.get_running_loop().run_in_executor(None, operation)


async def to_thread():
    return await asyncio.to_thread(operation)


async def loops_queue():
    loop, handed = asyncio.get_running_loop(), asyncio.Queue()
    beside(lambda: loop.call_soon_threadsafe(handed.put_nowait, operation()))
    return await handed.get()


def by_list():
    """By a list and a plain lock."""
    guard, box = threading.Lock(), []

    def work():
        with guard:
            box.append(operation())

    beside(work)
    while True:
        with guard:
            if box:
                return box[0]


def after_a_queue():
    """What the other thread does once it has put something in is not over."""
    handed, box = queue.Queue(), []
    beside(lambda: (handed.put(operation()), box.append(operation())))
    handed.get()
    while not box:
        time.sleep(0.001)
    return box[0]


def in_a_child():
    """What was over in the parent says nothing of the numbers of its child."""
    reader, writer = os.pipe()
    if not os.fork():
        made = []

        def work():
            while not made:
                time.sleep(0.001)
            os.write(writer, b"1" if handovers.is_over(made[0]) else b"0")

        began = threading.Thread(target=work)
        began.start()
        handovers.made()
        made.append(0)
        began.join()
        os._exit(0)
    os.wait()
    return os.read(reader, 1) == b"1"


WAYS = {
    "Queue": lambda: by_queue(queue.Queue),
    "LifoQueue": lambda: by_queue(queue.LifoQueue),
    "PriorityQueue": lambda: by_queue(queue.PriorityQueue),
    "SimpleQueue": lambda: by_queue(queue.SimpleQueue),
    "Event.wait": lambda: by_event(asks=False),
    "Event.is_set": lambda: by_event(asks=True),
    "Condition, late": lambda: by_condition(late=True),
    "Condition, early": lambda: by_condition(late=False),
    "Condition of a lock": lambda: by_condition(late=True, own_lock=True),
    "Condition.acquire": by_acquire,
    "Barrier": by_barrier,
    "Semaphore": by_semaphore,
    "Future.result": lambda: by_pool(lambda pool: pool.submit(operation).result()),
    "as_completed": lambda: by_pool(lambda pool: next(as_completed([pool.submit(operation)])).result()),
    "Executor.map": lambda: by_pool(lambda pool: list(pool.map(operation, "abc"))[1]),
    "ThreadPool.map": lambda: by_thread_pool(lambda pool: pool.map(operation, "abc")[1]),
    "imap_unordered": lambda: by_thread_pool(lambda pool: list(pool.imap_unordered(operation, "abc"))[1]),
    "apply_async": lambda: by_thread_pool(lambda pool: pool.apply_async(operation).get()),
    "Thread.join": lambda: by_join(asks=False),
    "Thread.is_alive": lambda: by_join(asks=True),
    "Thread.start": by_start,
    "run_in_executor": lambda: by_loop(executor),
    "to_thread": lambda: by_loop(to_thread),
    "call_soon_threadsafe": lambda: by_loop(loops_queue),
    "-list": by_list,
    "-after": after_a_queue,
    "-child": in_a_child,
}


if __name__ == "__main__":
    found = {}
    for name, way in WAYS.items():
        made = way()
        found[name] = made if isinstance(made, bool) else handovers.is_over(made)
    done.set()
    print(json.dumps(found))
