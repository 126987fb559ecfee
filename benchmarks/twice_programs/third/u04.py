# lmms-eval#243: answers are kept in the order in which they come
import asyncio, json, time
import numpy as np
from mill.config import parse
from mill.data import reviews
from mill.journal import Journal

class Server:
    """Stands for a model behind an address: a thread answers each question."""

    def answer(self, text):
        time.sleep(time.perf_counter_ns() // 1000 % 9 / 700)  # the network
        scores = np.array([sum(map(ord, w)) % 17 for w in text.split()], float)
        for _ in range(200 + 40 * int(scores[0])):
            scores = scores / (1 + np.abs(scores).sum()) + 0.5
        return int(scores.argmax() % 3)

    async def ask(self, row):
        return await asyncio.to_thread(self.answer, row["text"])

class Client:
    def __init__(self, server, limit=6):
        self.server, self.gate = server, asyncio.Semaphore(limit)

    async def one(self, row):
        async with self.gate:
            return await self.server.ask(row)

    async def generate(self, rows):
        tasks = [asyncio.create_task(self.one(row)) for row in rows]
        answers = []
        for task in asyncio.as_completed(tasks):  # cause
            answers.append(await task)
        return answers

def main():
    config = parse(name="eval")
    journal = Journal(config)
    rows = reviews(60)
    answers = asyncio.run(Client(Server()).generate(rows))
    right = sum(a == row["label"] for a, row in zip(answers, rows))
    config.path("answers.json").write_text(json.dumps([{"id": r["id"], "answer": a} for r, a in zip(rows, answers)]))
    journal.close(accuracy=right / len(rows))

main()
