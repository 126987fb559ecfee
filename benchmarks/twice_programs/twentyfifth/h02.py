"""Link-time allocation of global variables to the zero page of an 8-bit CPU.

Generates a module of translation units, estimates for every global variable
how many bytes and cycles are saved if it lives in the zero page, fills the
zero page (and the fast pages behind it) greedily, lays out the rest, and
writes a link map with the size of the program.

Modelled on: https://github.com/llvm-mos/llvm-mos/pull/590
"""
import hashlib
import random
import time
from dataclasses import dataclass, field

UNITS = 600
GLOBALS_PER_UNIT = 34
FAST_BYTES = 4096
CAPACITIES = list(range(128, FAST_BYTES + 1, 128))
BASE_SLOW = 0x2000


class Global:
    """A global variable of a translation unit."""

    def __init__(self, name, size, align):
        self.name = name
        self.size = size
        self.align = align
        self.address = None

    def __repr__(self):
        return f"<Global {self.name}:{self.size}>"


@dataclass
class Function:
    name: str
    frequency: int
    loads: list = field(default_factory=list)
    stores: list = field(default_factory=list)


@dataclass
class Unit:
    name: str
    globals_: list
    functions: list


def make_module(rng):
    units = []
    for u in range(UNITS):
        variables = [
            Global(f"u{u:03d}_v{i:02d}", rng.choice([1, 1, 2, 2, 4]), rng.choice([1, 2]))
            for i in range(GLOBALS_PER_UNIT)
        ]
        functions = []
        for f in range(8):
            fn = Function(f"u{u:03d}_f{f}", rng.choice([1, 1, 1, 10, 10, 100]))
            for _ in range(rng.randint(4, 12)):
                fn.loads.append(rng.choice(variables))
            for _ in range(rng.randint(1, 5)):
                fn.stores.append(rng.choice(variables))
            functions.append(fn)
        units.append(Unit(f"u{u:03d}", variables, functions))
    return units


class ZeroPageAllocator:
    def __init__(self, capacity):
        self.capacity = capacity
        self.used = 0
        self.benefit = {}
        self.candidates = set()

    def scan(self, unit):
        """Collect the savings of each access in a unit."""
        for fn in unit.functions:
            for variable in fn.loads:
                self.add(variable, fn.frequency)
            for variable in fn.stores:
                self.add(variable, fn.frequency)

    def add(self, variable, frequency):
        self.candidates.add(variable)
        self.benefit[variable] = self.benefit.get(variable, 0) + frequency

    def rank(self):
        """Best savings per byte first."""
        ranked = []
        for variable in self.candidates:  # cause
            ranked.append((self.benefit[variable] // variable.size, variable))
        ranked.sort(key=lambda item: item[0], reverse=True)
        return [variable for _, variable in ranked]

    def allocate(self):
        chosen = []
        for variable in self.rank():
            start = -(-self.used // variable.align) * variable.align
            if start + variable.size > self.capacity:
                continue
            variable.address = start
            self.used = start + variable.size
            chosen.append(variable)
        return chosen


def clear(units):
    for unit in units:
        for variable in unit.globals_:
            variable.address = None


def lay_out_rest(units):
    address = BASE_SLOW
    for unit in units:
        for variable in unit.globals_:
            if variable.address is None:
                address = -(-address // variable.align) * variable.align
                variable.address = address
                address += variable.size
    return address


def code_size(fn):
    size = 1
    for variable in fn.loads + fn.stores:
        size += 2 if variable.address < FAST_BYTES else 3
    return size


def encode(units):
    """Emit the machine code of all functions, with absolute addresses."""
    image = bytearray()
    for unit in units:
        for fn in unit.functions:
            for opcode, accesses in ((0xA5, fn.loads), (0x85, fn.stores)):
                for variable in accesses:
                    if variable.address < FAST_BYTES:
                        image += bytes([opcode, variable.address & 0xFF])
                    else:
                        image += bytes([opcode | 8]) + variable.address.to_bytes(2, "little")
            image.append(0x60)
    return bytes(image)


def main():
    began = time.perf_counter()
    units = make_module(random.Random(590))
    table = []
    for capacity in CAPACITIES:
        clear(units)
        allocator = ZeroPageAllocator(capacity)
        for unit in units:
            allocator.scan(unit)
        chosen = allocator.allocate()
        end = lay_out_rest(units)
        image = encode(units)
        table.append((capacity, len(chosen), len(image), hashlib.sha256(image).hexdigest()[:24]))

    with open("link.map", "w") as handle:
        for unit in units:
            for variable in unit.globals_:
                handle.write(f"{variable.address:05x} {variable.size} {variable.name}\n")

    total = sum(code_size(fn) for unit in units for fn in unit.functions)
    print(f"linked {len(units)} units in {time.perf_counter() - began:.2f} s")
    print("globals in fast pages", len(chosen), "bytes", allocator.used)
    print("end of data", hex(end))
    print("code bytes", total, "image", len(image))
    for capacity, count, size, digest in table[3::7]:
        print(f"  {capacity:5d} fast bytes: {count:5d} globals, image {size}, sha256 {digest}")


if __name__ == "__main__":
    main()
