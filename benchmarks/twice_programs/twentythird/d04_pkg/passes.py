"""Passes that make a triplicated netlist with voters."""
from .netlist import CELLS, Netlist


def find_insertion_points(net):
    """Pins after registers that close a loop through combinational logic."""
    points = set()
    for inst in net.instances:
        if not inst.is_register:
            continue
        wire = inst.output.wire
        for pin in wire.loads:
            if not pin.instance.is_register:
                points.add(pin)
    return points


def replicate(net, copies, suffix):
    """Returns the new netlist and the copies of each pin."""
    out = Netlist(net.name + suffix)
    pins = {}
    wires = {}
    for wire in net.wires:
        wires[wire] = [out.add_wire(f"{wire.name}_{suffix}_{k}") for k in range(copies)]
    for inst in net.instances:
        twins = [out.add_instance(f"{inst.name}_{suffix}_{k}", inst.cell) for k in range(copies)]
        for i, pin in enumerate(inst.inputs):
            pins[pin] = [t.inputs[i] for t in twins]
            for k, t in enumerate(twins):
                wires[pin.wire][k].connect(t.inputs[i])
        for k, t in enumerate(twins):
            wires[inst.output.wire][k].connect(t.output)
    return out, pins


class VoterInserter:
    """Places a majority voter before each copy of the given pins."""

    def __init__(self, net, suffix="VOTER"):
        self.net = net
        self.suffix = suffix
        self.count = 0
        self.voters = []

    def insert(self, copies):
        sources = [pin.wire for pin in copies]
        for pin in copies:
            name = f"vote_{self.count}_{self.suffix}"
            out = self.net.add_wire(name + "_o")
            pin.wire.disconnect(pin)
            out.connect(pin)
            self.voters.append((name, [w.name for w in sources], out.name))
            self.count += 1

    def run(self, points, pin_copies):
        for pin in points:  # cause
            self.insert(pin_copies[pin])
        return self.voters


def check(net):
    """Every input pin must be on a wire."""
    for inst in net.instances:
        for pin in inst.inputs:
            if pin.wire is None:
                raise ValueError(f"{pin.path} is not connected")
        if len(inst.inputs) != len(CELLS[inst.cell]):
            raise ValueError(f"{inst.name} has a wrong number of pins")
