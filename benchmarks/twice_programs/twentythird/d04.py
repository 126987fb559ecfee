"""Triple modular redundancy for a gate-level design.

Generates a clocked design, triplicates it, puts majority voters after the
registers that feed logic, and writes the hardened netlist in an EDIF-like
form with a checksum for the build log.

Modelled on: https://github.com/byuccl/spydrnet-tmr/issues/19
"""
import hashlib
import logging

from d04_pkg.netlist import random_netlist
from d04_pkg.passes import VoterInserter, check, find_insertion_points, replicate
from d04_pkg.writer import write_edif

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(name)s] %(message)s")
log = logging.getLogger("tmr")


def fanout_table(net):
    table = {}
    for wire in net.wires:
        table[len(wire.loads)] = table.get(len(wire.loads), 0) + 1
    return table


def checksum(path):
    digest = hashlib.sha256()
    with open(path, "rb") as fh:
        for block in iter(lambda: fh.read(1 << 16), b""):
            digest.update(block)
    return digest.hexdigest()


def main():
    design = random_netlist("counterBank", n_gates=16000, n_registers=5000, seed=8)
    log.info("design has %d instances", len(design.instances))
    points = find_insertion_points(design)
    log.info("%d insertion points", len(points))
    hardened, pin_copies = replicate(design, 3, "TMR")
    inserter = VoterInserter(hardened)
    voters = inserter.run(points, pin_copies)
    check(hardened)
    path = "counterBank_tmr.edif"
    write_edif(hardened, voters, path)
    print("cells before:", design.stats())
    print("cells after: ", hardened.stats())
    print("voters:", len(voters))
    for name, sources, out in voters[:3]:
        print(f"  {name}: {', '.join(sources)} -> {out}")
    fanout = fanout_table(hardened)
    print("largest fan-out:", max(fanout), "unused wires:", fanout.get(0, 0))
    print("sha256:", checksum(path)[:16])
    with open("voters.tsv", "w") as fh:
        for name, sources, out in voters:
            fh.write("\t".join([name, *sources, out]) + "\n")


if __name__ == "__main__":
    main()
