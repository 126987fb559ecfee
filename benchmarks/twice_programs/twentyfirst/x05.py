"""Points-to analysis of a generated module with a small Datalog engine.

Facts about allocations, assignments, field loads and stores are turned into
relations, one relation per program variable group; rules are evaluated
semi-naively, relation after relation, within the iteration budget that the
CI job allows, and the derived relations are dumped with their sizes.

Modelled on: https://github.com/souffle-lang/souffle/issues/475
"""
import json
import logging
import time
from pathlib import Path

from x05_pkg.engine import Engine
from x05_pkg.facts import generate_module
from x05_pkg.output import dump_relations, print_sizes
from x05_pkg.program import build_program

OUT = Path("out")


def main():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s")
    log = logging.getLogger("pointsto")
    t0 = time.time()
    OUT.mkdir(exist_ok=True)

    module = generate_module(seed=475, functions=22000, heap_sites=12000)
    program = build_program(module)
    log.info("%d relations, %d rules, %d facts", len(program.relations),
             len(program.rules), sum(len(r.tuples) for r in program.relations))

    engine = Engine(program, update_budget=80000)
    stats = engine.run()
    log.info("stopped after %d updates (%s)", stats["updates"],
             "fixpoint" if stats["fixpoint"] else "budget")

    dump_relations(program, OUT / "relations.csv")
    print_sizes(program, limit=12)
    with open(OUT / "stats.json", "w") as fh:
        json.dump(stats, fh, indent=1, sort_keys=True)
    print(f"tuples {stats['tuples']} derived {stats['derived']} "
          f"updates {stats['updates']} checksum {stats['checksum']}")
    log.info("took %.2f s", time.time() - t0)


if __name__ == "__main__":
    main()
