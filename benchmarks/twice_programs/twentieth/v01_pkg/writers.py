"""Output tables."""
import csv


def write_domains(section, labels, path):
    with open(path, "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["cell", "x", "y", "domain", "layer"])
        for i, (xy, label, truth) in enumerate(zip(section.xy, labels, section.truth)):
            writer.writerow([f"cell{i:05d}", f"{xy[0]:.4f}", f"{xy[1]:.4f}", int(label), int(truth)])
