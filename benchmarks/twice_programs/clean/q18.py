"""Feature detection in a synthetic LC-MS run, reported like OpenMS' FeatureFinderCentroided.

Output format: TOPP tool console output ("Progress of ...", "Found n seeds",
abort reasons, "took ... s (wall), ... s (CPU), ... s (system), ... s (user)",
peak memory) and the featureXML file with random unique ids.
Seen at: https://github.com/OpenMS/OpenMS/issues/4359
         https://github.com/OpenMS/OpenMS/pull/9128
Field: proteomics.
"""
import csv
import os
import random
import resource
import sys
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from datetime import datetime
from xml.etree import ElementTree as ET

import numpy as np

SCANS, MZ0, MZ1 = 900, 400.0, 800.0
NEUTRON, TOL = 1.00335, 0.012
IDS = random.SystemRandom()


@contextmanager
def progress(label):
    w, c = time.perf_counter(), time.process_time()
    sys.stdout.write(f"Progress of '{label}':\n")
    yield
    print(f"-- done [took {time.process_time() - c:.2f} s (CPU), {time.perf_counter() - w:.2f} s (Wall)] --")


def averagine(mass, n):
    lam = mass * 0.000594
    return np.array([lam ** k / np.prod(np.arange(1, k + 1)) for k in range(n)]) * np.exp(-lam)


def simulate():
    """Peak lists of every scan: (mz, intensity) sorted by mz."""
    rng = np.random.default_rng(4359)
    truth = []
    scans = [[] for _ in range(SCANS)]
    for _ in range(160):
        z = int(rng.choice([2, 3, 4], p=[.55, .35, .1]))
        mz, rt, width = rng.uniform(410, 780), rng.uniform(20, SCANS - 20), rng.uniform(2.5, 5)
        inten = 10 ** rng.uniform(4.2, 6.2)
        truth.append((mz, rt, z, inten))
        iso = averagine(mz * z, 5)
        for s in range(max(int(rt - 4 * width), 0), min(int(rt + 4 * width), SCANS - 1) + 1):
            shape = np.exp(-(s - rt) ** 2 / (2 * width ** 2))
            for k, frac in enumerate(iso):
                value = inten * frac * shape * rng.normal(1, .05)
                if value > 300:
                    scans[s].append((mz + k * NEUTRON / z + rng.normal(0, .0015), value))
    for s in range(SCANS):
        for _ in range(60):
            scans[s].append((rng.uniform(MZ0, MZ1), 300 * (1 + rng.pareto(3))))
        scans[s].sort()
    return truth, [np.array(s) for s in scans]


def nearest(scan, mz):
    i = int(np.searchsorted(scan[:, 0], mz))
    best = None
    for j in (i - 1, i):
        if 0 <= j < len(scan) and abs(scan[j, 0] - mz) < TOL and (best is None or scan[j, 1] > scan[best, 1]):
            best = j
    return best


def trace(scans, s, mz):
    points, total = [], 0.0
    for step in (-1, 1):
        k, miss = s + (0 if step == 1 else -1), 0
        while 0 <= k < SCANS and miss < 2:
            j = nearest(scans[k], mz)
            if j is None:
                miss += 1
            else:
                miss = 0
                points.append((k, float(scans[k][j, 0]), float(scans[k][j, 1])))
            k += step
    return sorted(points)


def extend(scans, s, mz, z, used, aborts):
    mono = trace(scans, s, mz)
    if len(mono) < 5:
        aborts["Could not extend seed"] += 1
        return None
    iso = [mono]
    for k in range(1, 5):
        t = trace(scans, s, mz + k * NEUTRON / z)
        if len(t) < 3:
            break
        iso.append(t)
    if len(iso) < 2:
        aborts["Could not find good enough isotope pattern containing the seed"] += 1
        return None
    sums = np.array([sum(p[2] for p in t) for t in iso])
    expect = averagine(mz * z, len(iso))
    quality = float(sums @ expect / np.sqrt((sums @ sums) * (expect @ expect)))
    if quality < 0.93:
        aborts["Feature quality too low after fit"] += 1
        return None
    weights = np.array([p[2] for p in mono])
    rt = float(np.average([p[0] for p in mono], weights=weights))
    fmz = float(np.average([p[1] for p in mono], weights=weights))
    return dict(rt=rt, mz=fmz, charge=z, intensity=float(sums.sum()), quality=quality, lo=mono[0][0], hi=mono[-1][0])


def main():
    wall, use0 = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    raw = os.path.join(os.getcwd(), f"run_{datetime.now():%Y%m%d}.mzML")
    with progress(f"loading {raw}"):
        truth, scans = simulate()
    features, aborts, t_seed = [], Counter(), time.time()
    with progress("Precalculating intensity scores"):
        flat = np.array([(s, *p) for s, scan in enumerate(scans) for p in scan])
        limit = float(np.percentile(flat[:, 2], 80))
        order = np.argsort(-flat[:, 2], kind="stable")
    for z in (2, 3, 4):
        found, seeds = 0, 0
        for n, idx in enumerate(order):
            s, mz, inten = int(flat[idx, 0]), float(flat[idx, 1]), float(flat[idx, 2])
            if inten < limit:
                break
            if nearest(scans[s], mz + NEUTRON / z) is None or nearest(scans[s], mz - NEUTRON / z) is not None:
                continue
            seeds += 1
            if any(abs(f["mz"] - mz) < .03 and f["lo"] - 3 <= s <= f["hi"] + 3 for f in features):
                continue
            f = extend(scans, s, mz, z, None, aborts)
            if f:
                features.append(f)
                found += 1
            if n % 400 == 0:
                sys.stderr.write(f"\r  {time.time() - t_seed:6.2f} s  seed {n:6d}, charge {z} ")
        print(f"Found {seeds} seeds for charge {z}.\nFound {found} feature candidates for charge {z}.")
    sys.stderr.write("\n")
    features.sort(key=lambda f: -f["intensity"])
    kept = []
    for f in features:
        if not any(abs(f["mz"] - k["mz"]) < 1.2 and f["lo"] <= k["rt"] <= f["hi"] and abs((f["mz"] - k["mz"]) * k["charge"] / NEUTRON - round((f["mz"] - k["mz"]) * k["charge"] / NEUTRON)) < .05 for k in kept):
            kept.append(f)
    print(f"Removed {len(features) - len(kept)} overlapping features.\n{len(kept)} features left.\n\nAbort reasons during feature construction:")
    for reason, n in sorted(aborts.items()):
        print(f"- {reason}: {n}")
    kept.sort(key=lambda f: f["mz"])
    root = ET.Element("featureMap", version="1.9", id=f"fm_{IDS.getrandbits(63)}", document_id=str(uuid.uuid4()))
    proc = ET.SubElement(root, "dataProcessing", completion_time=datetime.now().strftime("%Y-%m-%dT%H:%M:%S"))
    ET.SubElement(proc, "software", name="FeatureFinderCentroided", version="3.1.0")
    lst = ET.SubElement(root, "featureList", count=str(len(kept)))
    with open("features.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["unique_id", "rt", "mz", "charge", "intensity", "quality"])
        for f in kept:
            fid = f"f_{IDS.getrandbits(63)}"
            node = ET.SubElement(lst, "feature", id=fid)
            for dim, key in (("0", "rt"), ("1", "mz")):
                ET.SubElement(node, "position", dim=dim).text = f"{f[key]:.6f}"
            ET.SubElement(node, "intensity").text = f"{f['intensity']:.3f}"
            ET.SubElement(node, "charge").text = str(f["charge"])
            out.writerow([fid, f"{f['rt']:.4f}", f"{f['mz']:.5f}", f["charge"], f"{f['intensity']:.2f}", f"{f['quality']:.5f}"])
    ET.ElementTree(root).write("features.featureXML", xml_declaration=True, encoding="ISO-8859-1")
    hit = sum(any(abs(f["mz"] - t[0]) < .02 and abs(f["rt"] - t[1]) < 4 and f["charge"] == t[2] for f in kept) for t in truth)
    print(f"\nrecovered {hit} of {len(truth)} simulated peptides; charges " + ", ".join(f"{z}+: {n}" for z, n in sorted(Counter(f["charge"] for f in kept).items())))
    print("strongest features\n       m/z        RT   z     intensity  quality")
    for f in sorted(kept, key=lambda f: -f["intensity"])[:6]:
        print(f"{f['mz']:10.4f}{f['rt']:10.3f}{f['charge']:4d}{f['intensity']:14.1f}{f['quality']:9.5f}")
    use = resource.getrusage(resource.RUSAGE_SELF)
    user, system = use.ru_utime - use0.ru_utime, use.ru_stime - use0.ru_stime
    print(f"FeatureFinderCentroided took {time.perf_counter() - wall:.2f} s (wall), {user + system:.2f} s (CPU), {system:.2f} s (system), {user:.2f} s (user); "
          f"Peak Memory Usage: {use.ru_maxrss // 1024} MB.")


if __name__ == "__main__":
    main()
