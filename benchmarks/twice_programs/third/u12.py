# keras-retinanet#1085: threads fill the queue of batches in the order in which they are ready
import queue, threading
import numpy as np
import torch
from mill.config import parse
from mill.data import images
from mill.loop import Loop, seed_all
from mill.nets import Cnn

class Prefetch:
    def __init__(self, x, y, size, threads=3):
        self.x, self.y, self.size = x, y, size
        self.tasks, self.ready = queue.Queue(), queue.Queue(maxsize=4)
        self.count = len(x) // size
        self.threads = threads

    def __len__(self):
        return self.count

    def load(self, index):
        rows = slice(index * self.size, (index + 1) * self.size)
        x = self.x[rows]
        for _ in range(20 + 15 * (index % 3)):
            x = np.clip(np.fft.irfft2(np.fft.rfft2(x), s=x.shape[-2:]), 0, 1)
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(self.y[rows])

    def work(self):
        while (index := self.tasks.get()) is not None:
            self.ready.put(self.load(index))  # cause

    def __iter__(self):
        workers = [threading.Thread(target=self.work, daemon=True) for _ in range(self.threads)]
        for index in range(self.count):
            self.tasks.put(index)
        for each in workers:
            self.tasks.put(None)
            each.start()
        for _ in range(self.count):
            yield self.ready.get()  # cause
        for each in workers:
            each.join()

def main():
    config = parse(name="prefetch", epochs=2)
    seed_all(config.seed)
    x, y = images()
    Loop(config, Cnn(), torch.nn.CrossEntropyLoss()).fit(Prefetch(x, y, 4))

main()
