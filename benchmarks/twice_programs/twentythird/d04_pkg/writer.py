"""Text output of netlists."""


def write_edif(net, voters, path):
    with open(path, "w") as fh:
        fh.write(f"(edif {net.name}\n  (edifVersion 2 0 0)\n  (library work\n")
        for inst in net.instances:
            fh.write(f"    (instance {inst.name} (cellRef {inst.cell}))\n")
        for name, _, _ in voters:
            fh.write(f"    (instance {name} (cellRef LUT3) (property INIT (string \"8'hE8\")))\n")
        for wire in net.wires:
            loads = " ".join(f"(portRef {p.port} (instanceRef {p.instance.name}))" for p in wire.loads)
            fh.write(f"    (net {wire.name} (joined {loads}))\n")
        for name, sources, out in voters:
            fh.write(f"    (net {out} (voter {name} {' '.join(sources)}))\n")
        fh.write("  )\n)\n")
