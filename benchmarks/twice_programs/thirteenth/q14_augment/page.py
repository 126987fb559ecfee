"""Clean pages and simple features of degraded ones."""
import numpy as np
from PIL import Image, ImageDraw


def draw_page(text_lines, size=(420, 160)):
    page = Image.new("L", size, 250)
    pen = ImageDraw.Draw(page)
    for i, line in enumerate(text_lines):
        pen.text((12, 14 + 22 * i), line, fill=15)
    return np.asarray(page, dtype=float)


def features(image):
    gx = np.abs(np.diff(image, axis=1)).mean()
    gy = np.abs(np.diff(image, axis=0)).mean()
    hist, _ = np.histogram(image, bins=8, range=(0, 255))
    profile = image.mean(axis=0)
    return np.concatenate([[gx, gy, image.mean(), profile.std()], hist / hist.sum()])
