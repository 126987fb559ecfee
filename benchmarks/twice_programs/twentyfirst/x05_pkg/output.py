"""What the user sees."""
import csv


def dump_relations(program, path):
    with open(path, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["relation", "heap", "depth", "order"])
        for rel in program.relations:
            for (heap, depth), order in rel.tuples.items():
                w.writerow([rel.name, heap, depth, order])


def print_sizes(program, limit):
    ranked = sorted(program.relations, key=lambda r: (-len(r), r.name))
    for rel in ranked[:limit]:
        print(f"printsize {rel.name} {len(rel)}")
