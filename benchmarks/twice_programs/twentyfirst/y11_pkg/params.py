"""Parameter file: `name = value` lines."""

DEFAULT = """\
# simulation
sim.version      = 2.0
sim.years        = 1500
sim.faults       = 6
sim.elements     = 40
sim.model_seed   = 4
# friction
sim.friction.dynamic    = 0.35
sim.friction.strength   = 10.0
# aftershocks (branching)
sim.bass.max_generations = 3
sim.bass.dm      = 1.2
sim.bass.b       = 1.0
sim.bass.c       = 0.1
sim.bass.p       = 1.25
sim.bass.minimum = 3.5
"""


def write_default(path):
    with open(path, "w") as fh:
        fh.write(DEFAULT)


def read_params(path):
    out = {}
    with open(path) as fh:
        for line in fh:
            line = line.split("#")[0].strip()
            if not line:
                continue
            key, value = (p.strip() for p in line.split("=", 1))
            try:
                out[key] = int(value)
            except ValueError:
                out[key] = float(value)
    return out
