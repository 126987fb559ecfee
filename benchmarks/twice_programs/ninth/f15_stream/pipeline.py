"""A bounded queue between the actor and the learner."""
import queue

END = object()


class Pipeline:
    def __init__(self, size):
        self.queue = queue.Queue(maxsize=size)
        self.sent = 0
        self.refused = 0

    def send(self, item):
        try:
            self.queue.put_nowait(item)  # cause
            self.sent += 1
        except queue.Full:
            self.refused += 1

    def close(self):
        self.queue.put(END)

    def __iter__(self):
        while True:
            item = self.queue.get()
            if item is END:
                return
            yield item
