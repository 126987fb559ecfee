"""Runs a task function over cases and collects scores."""
import asyncio
import logging
from dataclasses import dataclass, field

log = logging.getLogger("evals.experiment")


@dataclass
class Report:
    scores: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    passed: list = field(default_factory=list)


class Experiment:
    def __init__(self, cases, evaluators, threshold=0.75):
        self.cases = cases
        self.evaluators = evaluators
        self.threshold = threshold

    async def _worker(self, queue, task, results):
        while True:
            try:
                case = queue.get_nowait()
            except asyncio.QueueEmpty:
                return
            answer = await task(case.text)
            scores = {name: fn(case, answer) for name, fn in self.evaluators.items()}
            results.append((answer, scores))  # cause
            if len(results) % 80 == 0:
                log.info("%d of %d cases done", len(results), len(self.cases))

    async def run_evaluations_async(self, task, max_workers=4):
        queue = asyncio.Queue()
        for case in self.cases:
            queue.put_nowait(case)
        results = []
        workers = [asyncio.create_task(self._worker(queue, task, results))
                   for _ in range(max_workers)]
        await asyncio.gather(*workers)
        report = Report()
        for answer, scores in results:
            report.outputs.append(answer)
            report.scores.append(scores)
            report.passed.append(scores["field_recall"] >= self.threshold)
        return report
