"""Verification of a log-processing configuration.

A pipeline configuration with filters and several outputs is loaded, events
are generated and sent through it, each output keeps its own sampling and
rollups, and the received events are compared with the recorded statistics.

Modelled on: https://github.com/magnusbaeck/logstash-filter-verifier/issues/150
"""
import json
import logging
import time

from x10_pkg.config import CONFIG, load_config
from x10_pkg.events import generate_events
from x10_pkg.pipeline import Pipeline
from x10_pkg.report import rollup, write_csv

EVENTS = 160_000


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    t0 = time.time()
    config = load_config(CONFIG)
    logging.info("%d filters, %d outputs", len(config.filters), len(config.outputs))

    pipeline = Pipeline(config, capacity=2050, seed=150)
    for event in generate_events(EVENTS, seed=2021):
        pipeline.process(event)
    received = pipeline.flush()

    table = rollup(received)
    write_csv("rollup.csv", table)
    summary = {name: {"events": len(evs),
                      "bytes": sum(e["bytes"] for e in evs),
                      "mean_latency": (sum(e["latency"] for e in evs) / len(evs)
                                       if evs else None)}
               for name, evs in sorted(received.items())}
    with open("received.json", "w") as fh:
        json.dump({"summary": summary, "dropped": pipeline.dropped}, fh, indent=1)
    for name, row in summary.items():
        print(f"{name:10s} events {row['events']:6d} bytes {row['bytes']:9d} "
              f"latency {row['mean_latency']:.5f}")
    print(f"dropped {pipeline.dropped}")
    logging.info("took %.1f s", time.time() - t0)


if __name__ == "__main__":
    main()
