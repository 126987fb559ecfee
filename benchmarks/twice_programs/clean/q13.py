"""Source extraction from a synthetic CCD frame, with SExtractor's console output.

Output format: SExtractor / Source Extractor run log, ASCII_HEAD catalogue,
XML meta-data (VOTable), FITS frame and a check image.
Seen at: https://github.com/astromatic/sextractor/issues/14
         https://github.com/astromatic/sextractor/issues/55
Field: astronomy.
"""
import getpass
import os
import socket
import sys
import threading
import time
from datetime import datetime, timezone
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image, PngImagePlugin
from scipy import ndimage

NX, NY, STARS, BACK = 900, 700, 260, 64


def card(key, value, comment=""):
    text = f"'{value:<8}'" if isinstance(value, str) else ("T" if value is True else str(value)).rjust(20)
    return f"{key:<8}= {text:<20} / {comment}"[:80].ljust(80)


def write_fits(path, data):
    head = [card("SIMPLE", True), card("BITPIX", -32), card("NAXIS", 2), card("NAXIS1", NX), card("NAXIS2", NY),
            card("DATE", datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f"), "file creation date (UTC)"),
            card("ORIGIN", socket.gethostname()[:30]), card("PROCID", os.getpid()), card("EXPTIME", 120.0), "END".ljust(80)]
    block = "".join(head).encode()
    block += b" " * (-len(block) % 2880)
    body = data.astype(">f4").tobytes()
    with open(path, "wb") as fh:
        fh.write(block + body + b"\0" * (-len(body) % 2880))


def frame():
    rng = np.random.default_rng(77)
    y, x = np.mgrid[0:NY, 0:NX]
    img = 400 + 0.05 * x + 0.03 * y + rng.normal(0, 12, (NY, NX))
    for _ in range(STARS):
        cx, cy = rng.uniform(8, NX - 8), rng.uniform(8, NY - 8)
        flux, fw = 800 * rng.pareto(1.1) + 700, rng.uniform(1.3, 1.9)
        x0, y0 = int(cx), int(cy)
        ys, xs = np.mgrid[max(y0 - 9, 0):min(y0 + 10, NY), max(x0 - 9, 0):min(x0 + 10, NX)]
        img[ys, xs] += min(flux, 2e5) / (2 * np.pi * fw ** 2) * np.exp(-((xs - cx) ** 2 + (ys - cy) ** 2) / (2 * fw ** 2))
    return img


def background(img):
    ny, nx = -(-NY // BACK), -(-NX // BACK)
    grid, rms = np.zeros((ny, nx)), np.zeros((ny, nx))
    for j in range(ny):
        for i in range(nx):
            cell = img[j * BACK:(j + 1) * BACK, i * BACK:(i + 1) * BACK].ravel()
            for _ in range(8):
                med, std = np.median(cell), cell.std()
                keep = np.abs(cell - med) < 3 * std
                if keep.all():
                    break
                cell = cell[keep]
            grid[j, i], rms[j, i] = 2.5 * np.median(cell) - 1.5 * cell.mean(), cell.std()
    grid = ndimage.median_filter(grid, 3)
    full = ndimage.zoom(grid, (NY / ny, NX / nx), order=3)
    return full, float(np.median(grid)), float(np.median(rms))


def measure(sub, labels, k, where, rms):
    sl = where[k - 1]
    ys, xs = np.nonzero(labels[sl] == k)
    val = sub[sl][ys, xs]
    tot = val.sum()
    mx, my = (xs * val).sum() / tot, (ys * val).sum() / tot
    xx, yy = (xs ** 2 * val).sum() / tot - mx ** 2, (ys ** 2 * val).sum() / tot - my ** 2
    xy = (xs * ys * val).sum() / tot - mx * my
    root = np.sqrt(max((xx - yy) ** 2 / 4 + xy ** 2, 0))
    a2, b2 = (xx + yy) / 2 + root, max((xx + yy) / 2 - root, 1e-3)
    X, Y = sl[1].start + mx, sl[0].start + my
    y0, y1 = max(int(Y) - 6, 0), min(int(Y) + 7, NY)
    x0, x1 = max(int(X) - 6, 0), min(int(X) + 7, NX)
    yy_, xx_ = np.mgrid[y0:y1, x0:x1]
    disk = (xx_ - X) ** 2 + (yy_ - Y) ** 2 < 25
    aper = sub[y0:y1, x0:x1][disk].sum()
    err = rms * np.sqrt(disk.sum())
    mag = 25 - 2.5 * np.log10(aper) if aper > 0 else 99.0
    return X + 1, Y + 1, aper, err, mag, 1 - np.sqrt(b2 / a2), len(val)


def main():
    t0 = time.time()
    print(f"----- SExtractor 2.28.0 started on {datetime.now():%Y-%m-%d at %H:%M:%S} with {threading.active_count()} thread\n")
    img = frame()
    write_fits("field.fits", img)
    print("> Setting catalog parameters\n> Initializing catalog\n> Looking for field.fits\n")
    print(f"----- Measuring from: field.fits\n      \"Unnamed\" / no ext. header / {NX}x{NY} / 32 bits (floats)")
    t_proc = time.time()
    full, level, rms = background(img)
    print(f"(M+D) Background: {level:<10.6g} RMS: {rms:<10.6g} / Threshold: {1.5 * rms:<10.6g} ")
    sub = img - full
    kernel = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    mask = ndimage.convolve(sub, kernel, mode="nearest") > 1.5 * rms
    labels, found = ndimage.label(mask, np.ones((3, 3)))
    sizes = np.bincount(labels.ravel(), minlength=found + 1)
    where = ndimage.find_objects(labels)
    rows, mark = [], time.time()
    detected = int((sizes[1:] >= 3).sum())
    for k in range(1, found + 1):
        if sizes[k] >= 5:
            rows.append(measure(sub, labels, k, where, rms))
        if time.time() - mark > 0.05:
            mark = time.time()
            sys.stderr.write(f"\r\x1b[1M> Line: {where[k - 1][0].stop:4d} of {NY}   {mark - t_proc:.2f} s")
    sys.stderr.write("\n")
    rows = [r for r in rows if r[2] / r[3] > 4]
    secs = time.time() - t_proc
    print(f"      Objects: detected {detected:<8d} / sextracted {len(rows):<15d}\n")
    rows.sort(key=lambda r: (round(r[1], 4), round(r[0], 4)))
    user = os.environ.get("USER") or str(os.getuid())
    with open("field.cat", "w") as fh:
        for i, name in enumerate(("NUMBER", "X_IMAGE", "Y_IMAGE", "FLUX_APER", "FLUXERR_APER", "MAG_APER", "ELLIPTICITY", "ISOAREA"), 1):
            fh.write(f"# {i:3d} {name}\n")
        for i, r in enumerate(rows, 1):
            fh.write(f"{i:10d} {r[0]:10.4f} {r[1]:10.4f} {r[2]:12.5g} {r[3]:10.5g} {r[4]:8.4f} {r[5]:6.3f} {r[6]:6d}\n")
    with open("field.xml", "w") as fh:
        fh.write('<?xml version="1.0" encoding="UTF-8"?>\n<VOTABLE version="1.1"><RESOURCE ID="SExtractor" name="field.cat">\n')
        now = datetime.now()
        for name, val in (("Date", now.strftime("%Y-%m-%d")), ("Time", now.strftime("%H:%M:%S")), ("Duration", f"{secs:.3f}"),
                          ("User", user), ("Host", socket.gethostname()), ("Path", os.getcwd()), ("NDetect", detected),
                          ("NSextracted", len(rows)), ("Background_Mean", f"{level:.6g}"), ("Background_StDev", f"{rms:.6g}")):
            fh.write(f'  <PARAM name="{name}" datatype="char" value="{escape(str(val))}"/>\n')
        fh.write("</RESOURCE></VOTABLE>\n")
    meta = PngImagePlugin.PngInfo()
    meta.add_text("Creation Time", time.strftime("%a, %d %b %Y %H:%M:%S"))
    meta.add_text("Software", f"sex pid {os.getpid()}")
    Image.fromarray(np.clip(sub / rms * 8 + 40, 0, 255).astype(np.uint8)).save("check.png", pnginfo=meta)
    print(f"> All done (in {secs:.1f} s: {NY / secs:.1f} lines/s , {len(rows) / secs:.1f} detections/s)\n")
    mags = np.array([r[4] for r in rows])
    print("bright end of the catalogue\n    X_IMAGE    Y_IMAGE     FLUX_APER   MAG_APER  ELLIP")
    for i in np.argsort(mags, kind="stable")[:6]:
        r = rows[i]
        print(f" {r[0]:10.3f} {r[1]:10.3f} {r[2]:13.2f} {r[4]:10.4f} {r[5]:6.3f}")
    edges = np.arange(11, 20)
    print("magnitude histogram: " + " ".join(f"{e}:{n}" for e, n in zip(edges, np.histogram(mags, edges)[0])))
    print(f"median magnitude {np.median(mags):.4f}; wrote 4 files, {time.time() - t0:.2f} s in all")


if __name__ == "__main__":
    main()
