"""Earthquake cycle simulation on a block of faults.

Loads every fault element at its slip rate, lets elements fail with a rate
dependent on stress, passes the stress on to the neighbours, follows each main
shock with aftershocks and writes the catalogue with its statistics.

Modelled on: https://github.com/geodynamics/vq/issues/41
"""
import logging
import sys

from y11_pkg.catalog import Catalog
from y11_pkg.model import FaultModel
from y11_pkg.params import read_params, write_default
from y11_pkg.simulation import Simulation
from y11_pkg.stats import catalog_statistics, write_statistics

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
log = logging.getLogger("vq")


def main(path="params.d"):
    write_default(path)
    params = read_params(path)
    model = FaultModel.build(params)
    log.info("%d elements on %d faults", model.n, params["sim.faults"])
    sim = Simulation(model, params)
    catalog = Catalog()
    sim.run(catalog)
    catalog.write("events.csv")
    stats = catalog_statistics(catalog, params)
    write_statistics("statistics.json", stats)
    for k, v in stats.items():
        if not isinstance(v, list):
            print(f"{k:<24s} {v}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
