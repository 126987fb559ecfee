"""Modelled on https://github.com/AllenInstitute/AllenSDK/pull/2671

Analysis of an electrophysiology session: two executions show different units
in the summary tables and figures.
"""
import argparse
import json
import logging
import os

import numpy as np
import pandas as pd

logger = logging.getLogger("ecephys")

AREAS = ["VISp", "VISl", "VISal", "VISrl", "LGd", "CA1"]
STIMULI = ["drifting_gratings", "flashes", "natural_scenes"]


def parse_args():
    p = argparse.ArgumentParser(description="ecephys session summary")
    p.add_argument("--session-id", type=int, default=750332458)
    p.add_argument("--seed", type=int, default=17)
    p.add_argument("--n-units", type=int, default=320)
    p.add_argument("--n-trials", type=int, default=60)
    p.add_argument("--units-to-plot", type=int, default=40)
    p.add_argument("--bin-size", type=float, default=0.05)
    p.add_argument("--out", default="session_summary")
    return p.parse_args()


def make_units(n_units, rng):
    """The unit table of the session with its quality metrics."""
    units = pd.DataFrame(
        {
            "unit_id": 950900000 + np.arange(n_units) * 7,
            "structure": rng.choice(AREAS, n_units, p=[0.25, 0.15, 0.15, 0.15, 0.1, 0.2]),
            "snr": rng.gamma(3.0, 1.0, n_units).round(3),
            "isi_violations": rng.exponential(0.2, n_units).round(4),
            "presence_ratio": rng.beta(12, 1, n_units).round(3),
            "amplitude_cutoff": rng.beta(1, 12, n_units).round(4),
            "firing_rate": rng.lognormal(1.4, 0.7, n_units).round(3),
            "probe_vertical_position": rng.integers(20, 3840, n_units),
        }
    )
    return units.set_index("unit_id")


def make_presentations(n_trials, rng):
    onset = np.cumsum(rng.uniform(0.75, 1.25, n_trials * len(STIMULI)))
    names = np.repeat(STIMULI, n_trials)
    pres = pd.DataFrame({"stimulus_name": names, "start_time": onset})
    pres["stop_time"] = pres["start_time"] + 0.5
    pres["contrast"] = rng.choice([0.1, 0.4, 0.8], len(pres))
    pres.index.name = "stimulus_presentation_id"
    return pres


def make_spikes(units, presentations, rng):
    """Poisson spike times with an evoked response that depends on area and stimulus."""
    gain = {a: rng.uniform(0.6, 2.6, len(STIMULI)) for a in AREAS}
    total = presentations["stop_time"].iloc[-1] + 1.0
    starts = presentations["start_time"].to_numpy()
    stim_no = presentations["stimulus_name"].map({s: i for i, s in enumerate(STIMULI)}).to_numpy()
    spikes = {}
    for uid, row in units.iterrows():
        base = rng.uniform(0, total, rng.poisson(row.firing_rate * total))
        evoked = []
        lam = row.firing_rate * 0.3 * gain[row.structure][stim_no]
        counts = rng.poisson(lam)
        for s, c in zip(starts, counts):
            if c:
                evoked.append(s + 0.04 + rng.gamma(2.0, 0.03, c))
        spikes[uid] = np.sort(np.concatenate([base] + evoked))
    return spikes


def filter_units(units):
    ok = (
        (units["isi_violations"] < 0.5)
        & (units["presence_ratio"] > 0.9)
        & (units["amplitude_cutoff"] < 0.1)
        & (units["snr"] > 1.0)
    )
    logger.info("%d of %d units pass the quality filters", int(ok.sum()), len(units))
    return units[ok]


def psth(spike_times, starts, bins):
    counts = np.zeros(len(bins) - 1)
    for s in starts:
        lo, hi = np.searchsorted(spike_times, [s + bins[0], s + bins[-1]])
        counts += np.histogram(spike_times[lo:hi] - s, bins)[0]
    width = bins[1] - bins[0]
    return counts / (len(starts) * width)


def responses(unit_ids, spikes, presentations, bin_size):
    bins = np.arange(-0.2, 0.5 + 1e-9, bin_size)
    rows = []
    for name, pres in presentations.groupby("stimulus_name"):
        starts = pres["start_time"].to_numpy()
        for uid in unit_ids:
            rate = psth(spikes[uid], starts, bins)
            before = rate[bins[:-1] < 0].mean()
            after = rate[(bins[:-1] >= 0) & (bins[:-1] < 0.25)]
            rows.append(
                {
                    "unit_id": uid,
                    "stimulus": name,
                    "baseline": before,
                    "evoked": after.mean(),
                    "peak": after.max(),
                    "latency": bins[:-1][bins[:-1] >= 0][int(after.argmax())],
                }
            )
    return pd.DataFrame(rows)


def selectivity(table):
    wide = table.pivot(index="unit_id", columns="stimulus", values="evoked")
    share = wide.div(wide.sum(axis=1), axis=0)
    ent = -(share * np.log(share.clip(lower=1e-9))).sum(axis=1)
    return 1.0 - ent / np.log(len(STIMULI))


def area_summary(table, units):
    joined = table.join(units[["structure"]], on="unit_id")
    joined["modulation"] = (joined["evoked"] - joined["baseline"]) / (
        joined["evoked"] + joined["baseline"]
    )
    agg = joined.groupby(["structure", "stimulus"]).agg(
        n=("unit_id", "nunique"),
        modulation=("modulation", "mean"),
        peak=("peak", "median"),
        latency=("latency", "mean"),
    )
    return agg.round(5)


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    os.makedirs(args.out, exist_ok=True)
    rng = np.random.default_rng(args.seed)

    units = make_units(args.n_units, rng)
    presentations = make_presentations(args.n_trials, rng)
    spikes = make_spikes(units, presentations, rng)
    logger.info("session %d: %d units, %d presentations, %d spikes", args.session_id,
                len(units), len(presentations), sum(len(s) for s in spikes.values()))

    good = filter_units(units)
    print(good.groupby("structure").size().to_string())

    chosen = good.sample(args.units_to_plot)  # cause
    chosen = chosen.sort_values(["structure", "probe_vertical_position"])
    logger.info("units for the raster: %s ...", list(chosen.index[:5]))

    table = responses(chosen.index, spikes, presentations, args.bin_size)
    summary = area_summary(table, chosen)
    sel = selectivity(table)

    chosen.to_csv(os.path.join(args.out, "raster_units.csv"))
    table.round(5).to_csv(os.path.join(args.out, "responses.csv"), index=False)
    summary.to_csv(os.path.join(args.out, "area_summary.csv"))
    with open(os.path.join(args.out, "metrics.json"), "w") as fh:
        json.dump(
            {
                "session": args.session_id,
                "n_good_units": int(len(good)),
                "mean_selectivity": round(float(sel.mean()), 6),
                "mean_evoked": round(float(table["evoked"].mean()), 6),
                "most_selective_unit": int(sel.idxmax()),
            },
            fh,
            indent=1,
        )
    print(summary.to_string())
    print(f"mean selectivity {sel.mean():.5f}, mean evoked rate {table['evoked'].mean():.4f} Hz")


if __name__ == "__main__":
    main()
