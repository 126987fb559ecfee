"""From facts to relations and rules."""
from .facts import FieldFilter
from .relation import Program


def build_program(module):
    program = Program()
    for name in module.variables:
        program.relation(f"pts({name})")
    for name, site in module.allocations:
        program.relation(f"pts({name})").insert((site, 0))
    for source, target in module.assignments:
        program.add_rule(program.relation(f"pts({source})"),
                         program.relation(f"pts({target})"))
    for source, target, number in module.loads:
        program.add_rule(program.relation(f"pts({source})"),
                         program.relation(f"pts({target})"),
                         keep=FieldFilter(number))
    return program
