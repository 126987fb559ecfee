"""https://github.com/vllm-project/vllm/issues/27433: a server batches what came within a few milliseconds, and a row's bits depend on its batch."""

import queue
import threading
import time

import torch

torch.manual_seed(0)


class Batcher(threading.Thread):
    def __init__(self, model, most=16, wait=0.001):
        super().__init__(daemon=True)
        self.model, self.most, self.wait = model, most, wait
        self.waiting = queue.Queue()

    def submit(self, row):
        done = {"event": threading.Event(), "row": row}
        self.waiting.put(done)
        return done

    def run(self):
        while True:
            batch = [self.waiting.get()]
            until = time.monotonic() + self.wait
            while len(batch) < self.most:
                left = until - time.monotonic()
                if left <= 0:
                    break
                try:
                    batch.append(self.waiting.get(timeout=left))  # cause
                except queue.Empty:
                    break
            with torch.no_grad():
                answers = self.model(torch.stack([each["row"] for each in batch]))
            for each, answer in zip(batch, answers):
                each["answer"] = answer
                each["event"].set()


def client(server, rows, answers, first):
    for i, row in enumerate(rows):
        time.sleep(0.0005 * ((first + 7 * i) % 5))  # reads its input
        done = server.submit(row)
        done["event"].wait()
        answers[first + i] = done["answer"]


def main():
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)).eval()
    rows = torch.randn(80, 256)
    server = Batcher(model)
    server.start()
    answers = [None] * len(rows)
    clients = [threading.Thread(target=client, args=(server, rows[i * 10 : i * 10 + 10], answers, i * 10)) for i in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    table = torch.stack(answers)
    print("answers", table.double().sum().item(), table.double().square().sum().item())
    torch.save(table, "answers.pt")


main()
