"""Enlarges an image set by random augmentation.

Draws a few synthetic pictures, applies a pipeline of random operations to
them until the wanted number of samples is reached, saves the samples as PNG
and writes an index with the parameters and the mean brightness of each.

Modelled on: https://github.com/mdbloice/Augmentor/issues/130
"""
import csv
import logging
import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("augment")


class Operation:
    name = "operation"

    def __init__(self, probability):
        self.probability = probability

    def perform(self, image, notes):
        raise NotImplementedError


class Flip(Operation):
    name = "flip"

    def perform(self, image, notes):
        notes.append("flip")
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


class Rotate(Operation):
    name = "rotate"

    def __init__(self, probability, max_left, max_right):
        super().__init__(probability)
        self.max_left = max_left
        self.max_right = max_right

    def perform(self, image, notes):
        angle = random.randint(-self.max_left, self.max_right)
        notes.append(f"rotate={angle}")
        return image.rotate(angle, resample=Image.Resampling.BICUBIC)


class Zoom(Operation):
    name = "zoom"

    def perform(self, image, notes):
        factor = round(random.uniform(1.05, 1.5), 3)
        notes.append(f"zoom={factor}")
        w, h = image.size
        big = image.resize((int(w * factor), int(h * factor)), Image.Resampling.LANCZOS)
        left, top = (big.width - w) // 2, (big.height - h) // 2
        return big.crop((left, top, left + w, top + h))


class Brightness(Operation):
    name = "brightness"

    def perform(self, image, notes):
        factor = round(random.uniform(0.75, 1.25), 3)
        notes.append(f"brightness={factor}")
        return ImageEnhance.Brightness(image).enhance(factor)


class Blur(Operation):
    name = "blur"

    def perform(self, image, notes):
        radius = random.choice([1, 2, 3])
        notes.append(f"blur={radius}")
        return image.filter(ImageFilter.GaussianBlur(radius))


class Pipeline:
    def __init__(self, source_dir, output_dir):
        self.files = sorted(os.path.join(source_dir, f) for f in os.listdir(source_dir))
        self.output_dir = output_dir
        self.operations = []
        os.makedirs(output_dir, exist_ok=True)

    @staticmethod
    def set_seed(seed):
        random.seed(seed)

    def add(self, operation):
        self.operations.append(operation)
        return self

    def _execute(self, job):
        number, path = job
        notes = []
        with Image.open(path) as source:
            image = source.convert("RGB")
        for op in self.operations:
            if random.random() < op.probability:  # cause
                image = op.perform(image, notes)
        name = f"sample_{number:04d}.png"
        image.save(os.path.join(self.output_dir, name))
        mean = float(np.asarray(image, dtype=np.float64).mean())
        return name, os.path.basename(path), ";".join(notes), round(mean, 4)

    def sample(self, n, workers=4):
        jobs = [(k, self.files[k % len(self.files)]) for k in range(n)]
        with ThreadPoolExecutor(max_workers=workers) as executor:
            return list(executor.map(self._execute, jobs))  # cause


def draw_sources(folder, n, size, seed):
    rng = random.Random(seed)
    os.makedirs(folder, exist_ok=True)
    for k in range(n):
        image = Image.new("RGB", (size, size), tuple(rng.randrange(256) for _ in range(3)))
        pen = ImageDraw.Draw(image)
        for _ in range(30):
            x, y, r = rng.randrange(size), rng.randrange(size), rng.randrange(8, 60)
            colour = tuple(rng.randrange(256) for _ in range(3))
            if rng.random() < 0.5:
                pen.ellipse([x - r, y - r, x + r, y + r], fill=colour)
            else:
                pen.rectangle([x - r, y - r // 2, x + r, y + r // 2], fill=colour)
        image.save(os.path.join(folder, f"source_{k:02d}.png"))


def main():
    draw_sources("train", n=10, size=256, seed=4)
    pipeline = Pipeline("train", "output")
    pipeline.set_seed(0)
    pipeline.add(Flip(0.5)).add(Rotate(0.6, 45, 45)).add(Zoom(0.4))
    pipeline.add(Brightness(0.5)).add(Blur(0.3))
    log.info("%d source images, %d operations", len(pipeline.files), len(pipeline.operations))
    rows = pipeline.sample(160)
    with open("index.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["sample", "source", "operations", "mean"])
        out.writerows(rows)
    used = {}
    for _, _, notes, _ in rows:
        for note in filter(None, notes.split(";")):
            op = note.split("=")[0]
            used[op] = used.get(op, 0) + 1
    print("samples:", len(rows))
    for op in sorted(used):
        print(f"  {op:11s} {used[op]}")
    print("mean brightness: %.4f" % np.mean([r[3] for r in rows]))
    for row in rows[:5]:
        print(" ", row[0], row[2] or "-")


if __name__ == "__main__":
    main()
