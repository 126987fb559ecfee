"""A small structural netlist: instances, pins and wires."""
import random

CELLS = {"AND2": ("A", "B"), "OR2": ("A", "B"), "XOR2": ("A", "B"), "INV": ("A",), "DFF": ("D",)}


class Pin:
    def __init__(self, instance, port, direction):
        self.instance = instance
        self.port = port
        self.direction = direction
        self.wire = None

    @property
    def path(self):
        return f"{self.instance.name}/{self.port}"


class Wire:
    def __init__(self, name):
        self.name = name
        self.driver = None
        self.loads = []

    def connect(self, pin):
        pin.wire = self
        if pin.direction == "out":
            self.driver = pin
        else:
            self.loads.append(pin)

    def disconnect(self, pin):
        self.loads.remove(pin)
        pin.wire = None


class Instance:
    def __init__(self, name, cell):
        self.name = name
        self.cell = cell
        self.inputs = [Pin(self, port, "in") for port in CELLS[cell]]
        self.output = Pin(self, "Q", "out")

    @property
    def is_register(self):
        return self.cell == "DFF"


class Netlist:
    def __init__(self, name):
        self.name = name
        self.instances = []
        self.wires = []

    def add_instance(self, name, cell):
        inst = Instance(name, cell)
        self.instances.append(inst)
        return inst

    def add_wire(self, name):
        wire = Wire(name)
        self.wires.append(wire)
        return wire

    def stats(self):
        count = {}
        for inst in self.instances:
            count[inst.cell] = count.get(inst.cell, 0) + 1
        return dict(sorted(count.items()))


def random_netlist(name, n_gates, n_registers, seed):
    """A clocked circuit in which registers feed back into the logic."""
    rng = random.Random(seed)
    net = Netlist(name)
    sources = []
    registers = []
    for k in range(n_registers):
        reg = net.add_instance(f"r{k}", "DFF")
        wire = net.add_wire(f"q{k}")
        wire.connect(reg.output)
        sources.append(wire)
        registers.append(reg)
    gates = [c for c in CELLS if c != "DFF"]
    for k in range(n_gates):
        inst = net.add_instance(f"g{k}", rng.choice(gates))
        for pin in inst.inputs:
            pick = sources[rng.randrange(max(0, len(sources) - 900), len(sources))] \
                if rng.random() < 0.7 else rng.choice(sources)
            pick.connect(pin)
        wire = net.add_wire(f"n{k}")
        wire.connect(inst.output)
        sources.append(wire)
    for reg in registers:
        rng.choice(sources[n_registers:]).connect(reg.inputs[0])
    return net
