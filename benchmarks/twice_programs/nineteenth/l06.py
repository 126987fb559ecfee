"""Fuel-cycle simulation with regional commodity markets.

Sets up mines, plants and reactors in a few regions from a seeded scenario,
runs them month by month, and writes the market history, the facilities'
final state and the indicators per region.

Modelled on: https://github.com/cyclus/cyclus/pull/970
"""
import argparse
import csv
import json
import random
import time
from pathlib import Path

from l06_pkg.agents import Mine, Plant, Reactor
from l06_pkg.context import Context, Timer

REGIONS = ["north", "south", "east", "west"]


def build_scenario(ctx, n_mines, n_plants, n_reactors, rng):
    next_id = 1
    for _ in range(n_mines):
        Mine(next_id, ctx, rng.choice(REGIONS), capacity=rng.uniform(3.0, 9.0))
        next_id += 1
    for _ in range(n_plants):
        Plant(next_id, ctx, rng.choice(REGIONS), throughput=rng.uniform(5.0, 10.0), loss=rng.uniform(0.02, 0.08))
        next_id += 1
    for _ in range(n_reactors):
        cycle = rng.choice([3, 6, 9])
        Reactor(next_id, ctx, rng.choice(REGIONS), batch=rng.uniform(2.0, 6.0), cycle=cycle,
                offset=rng.randrange(cycle))
        next_id += 1
    return next_id - 1


def region_indicators(ctx):
    table = {r: {"facilities": 0, "ore_mined": 0.0, "fuel_made": 0.0, "energy": 0.0} for r in REGIONS}
    for agent_id in sorted(ctx.agents):
        a = ctx.agents[agent_id]
        row = table[a.region]
        row["facilities"] += 1
        if a.kind == "mine":
            row["ore_mined"] += a.traded
        elif a.kind == "plant":
            row["fuel_made"] += a.traded
        else:
            row["energy"] += a.energy
    for r in REGIONS:
        row = table[r]
        row["unmet"] = sum(ctx.market(c, r).unmet for c in ("ore", "fuel"))
        for k, v in row.items():
            if isinstance(v, float):
                row[k] = round(v, 3)
    return table


def write_outputs(out, ctx, history, indicators):
    with open(out / "markets.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["month", "ore", "fuel", "unmet"])
        writer.writerows(history)
    with open(out / "facilities.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["id", "kind", "region", "stock", "traded"])
        for agent_id in sorted(ctx.agents):
            a = ctx.agents[agent_id]
            writer.writerow([a.agent_id, a.kind, a.region, f"{a.stock:.4f}", f"{a.traded:.4f}"])
    (out / "indicators.json").write_text(json.dumps(indicators, indent=2))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--months", type=int, default=1200)
    ap.add_argument("--mines", type=int, default=500)
    ap.add_argument("--plants", type=int, default=500)
    ap.add_argument("--reactors", type=int, default=1500)
    ap.add_argument("--seed", type=int, default=77)
    ap.add_argument("--out", default="cycle_out")
    args = ap.parse_args()

    started = time.strftime("%Y-%m-%d %H:%M:%S")
    rng = random.Random(args.seed)
    out = Path(args.out)
    out.mkdir(exist_ok=True)

    ctx = Context()
    total = build_scenario(ctx, args.mines, args.plants, args.reactors, rng)
    print(f"{started}  {total} facilities in {len(REGIONS)} regions")
    history = Timer(ctx).run(args.months)
    indicators = region_indicators(ctx)
    write_outputs(out, ctx, history, indicators)

    for region in REGIONS:
        row = indicators[region]
        print(f"{region:>6}: energy {row['energy']:12.3f}  fuel {row['fuel_made']:12.3f}  unmet {row['unmet']:12.3f}")
    month, ore, fuel, unmet = history[-1]
    print(f"end of month {month}: ore {ore}, fuel {fuel}, unmet {unmet}")


if __name__ == "__main__":
    main()
