"""Run one fee rule over the demand scenario."""
import argparse
import csv
import time

import numpy as np

from .agents import spawn
from .market import RULES, Pool


def warm_up(rule_name, seed, first, blocks=40):
    """Initial pool of background transactions, the same for every rule."""
    from .agents import Transaction
    rng = np.random.default_rng(seed)
    txs = []
    for k in range(blocks * 8):
        fee = float(rng.lognormal(2.4, 0.4))
        txs.append(Transaction(-1 - k, first, 21_000, fee,
                               fee if rule_name == "auction" else 1.0))
    return txs


def run(rule_name, demand, seed):
    rule, pool = RULES[rule_name](), Pool()
    pool.add(warm_up(rule_name, seed, demand[0][0]))
    rows, born = [], 0
    for block, expected in demand:
        users = spawn(expected, born, block)
        born += len(users)
        price = rule.price
        txs = [t for t in (u.transact(rule_name, price) for u in users)
               if t is not None]
        pool.add(txs)
        pool.expire(block)
        used, included = rule.select(pool)
        fees = [rule.paid(t) for t in included]
        delay = [block - t.born for t in included]
        rule.update(used, included)
        rows.append([block, len(users), len(txs), len(included), used,
                     f"{price:.6f}",
                     f"{np.mean(fees) if fees else 0.0:.6f}",
                     f"{np.mean(delay) if delay else 0.0:.6f}", len(pool.txs)])
    return rows


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rule", choices=sorted(RULES), required=True)
    ap.add_argument("--seed", type=int, required=True)
    ap.add_argument("--demand", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    t0 = time.time()
    with open(args.demand) as fh:
        demand = [(int(r["block"]), float(r["demand"])) for r in csv.DictReader(fh)]
    rows = run(args.rule, demand, args.seed)
    with open(args.out, "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["block", "users", "sent", "included", "gas", "price",
                    "mean_fee", "mean_delay", "pool"])
        w.writerows(rows)
    print(f"[{args.rule}] {len(rows)} blocks, took {time.time() - t0:.2f}s")


if __name__ == "__main__":
    main()
