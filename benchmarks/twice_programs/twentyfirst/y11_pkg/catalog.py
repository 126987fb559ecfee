"""Event catalogue."""
import csv
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    year: float
    magnitude: float
    x: float
    y: float
    elements: int
    generation: int


class Catalog:
    def __init__(self):
        self.events = []

    def add(self, event):
        self.events.append(event)

    def __len__(self):
        return len(self.events)

    def main_events(self):
        return [e for e in self.events if e.generation == 0]

    def write(self, path, minimum=4.0):
        with open(path, "w", newline="") as fh:
            w = csv.writer(fh)
            w.writerow(["year", "magnitude", "x", "y", "elements", "generation"])
            for e in sorted(self.events, key=lambda e: (e.year, e.magnitude)):
                if e.magnitude >= minimum:
                    w.writerow([f"{e.year:.5f}", f"{e.magnitude:.4f}", f"{e.x:.3f}", f"{e.y:.3f}",
                                e.elements, e.generation])
