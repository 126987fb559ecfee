"""A little pool of worker threads."""
import logging
import queue
import threading

log = logging.getLogger("pool")


class Job:
    __slots__ = ("fn", "arg", "result", "error", "sink")

    def __init__(self, fn, arg, sink):
        self.fn, self.arg, self.sink = fn, arg, sink
        self.result = None
        self.error = None

    def run(self):
        try:
            self.result = self.fn(self.arg)
        except Exception as exc:
            self.error = exc
        self.sink.put(self)


class Worker(threading.Thread):
    def __init__(self, jobs, number):
        super().__init__(name=f"worker-{number}", daemon=True)
        self.jobs = jobs
        self.count = 0

    def run(self):
        while True:
            job = self.jobs.get()
            if job is None:
                break
            job.run()
            self.count += 1


class WorkerPool:
    def __init__(self, size=2):
        self.jobs = queue.Queue()
        self.workers = [Worker(self.jobs, i) for i in range(size)]
        for w in self.workers:
            w.start()

    def map(self, fn, items):
        """Apply fn to every item on the workers and return the list of results."""
        finished = queue.Queue()
        jobs = [Job(fn, item, finished) for item in items]
        for job in jobs:
            self.jobs.put(job)
        done = [finished.get() for _ in jobs]
        for job in done:
            if job.error is not None:
                raise job.error
        return [job.result for job in done]  # cause

    def shutdown(self):
        for _ in self.workers:
            self.jobs.put(None)
        for w in self.workers:
            w.join()
            log.info("%s ran %d jobs", w.name, w.count)
