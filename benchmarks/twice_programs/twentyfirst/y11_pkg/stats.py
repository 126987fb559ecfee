"""Catalogue statistics."""
import json

import numpy as np


def b_value(mags, mc):
    m = mags[mags >= mc]
    return float(np.log10(np.e) / (m.mean() - mc)) if len(m) > 10 else float("nan")


def catalog_statistics(catalog, p):
    mags = np.array([e.magnitude for e in catalog.events])
    main = catalog.main_events()
    big = np.array([e.year for e in main if e.magnitude >= 6.0])
    gaps = np.diff(big)
    hist, _ = np.histogram(mags, bins=np.arange(3.5, 9.01, 0.25))
    return {"events": len(mags), "main_events": len(main), "max_magnitude": float(mags.max()),
            "b_value": b_value(mags, 4.0), "large_events": int(len(big)),
            "mean_recurrence": float(gaps.mean()) if len(gaps) else None,
            "recurrence_cov": float(gaps.std() / gaps.mean()) if len(gaps) else None,
            "rate_m5_per_year": float((mags >= 5).sum() / p["sim.years"]),
            "histogram": hist.tolist()}


def write_statistics(path, stats):
    with open(path, "w") as fh:
        json.dump(stats, fh, indent=1)
