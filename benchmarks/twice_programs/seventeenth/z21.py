"""Evaluate an extraction endpoint on a labelled case set with several workers.

Modelled on https://github.com/strands-agents/evals/pull/214

A small HTTP service is started on the loopback interface, an experiment sends
every case to it from a pool of asyncio workers, evaluators score the answers,
and a report is written with per-case verdicts and per-category means.
"""
import asyncio
import logging
import sys
import time
from pathlib import Path

from z21_pkg import cases, report
from z21_pkg.client import Client
from z21_pkg.evaluators import EVALUATORS
from z21_pkg.experiment import Experiment
from z21_pkg.service import serve

log = logging.getLogger("evals")


async def run(out):
    case_list = cases.build(n=320, seed=214)
    server, port = await serve()
    log.info("service is up, %d cases", len(case_list))
    client = Client("127.0.0.1", port)
    experiment = Experiment(case_list, EVALUATORS)
    began = time.perf_counter()
    try:
        rep = await experiment.run_evaluations_async(client.extract, max_workers=8)
    finally:
        server.close()
        await server.wait_closed()
    log.info("evaluated in %.2f s", time.perf_counter() - began)
    report.write(rep, case_list, out)
    report.show(rep, case_list)


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(levelname)s [%(name)s] %(message)s")
    out = Path("eval_report")
    out.mkdir(exist_ok=True)
    asyncio.run(run(out))
    log.info("report in %s", out.resolve())


if __name__ == "__main__":
    main()
