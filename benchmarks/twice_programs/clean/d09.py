"""Style of Capataina/Asteroids-AI (training_summary.md, generation records, parallel evaluation). Differs in each run:
'Generated:' date, seconds per generation and share of evaluation, worker process ids and loads, session id, pickle's dates."""
import os
import pickle
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime

import numpy as np

POP, GENS, WORKERS, SIZES = 20, 10, 3, (6, 10, 3)
NW = sum(a * b + b for a, b in zip(SIZES, SIZES[1:]))
SESSION = f"{datetime.now():%Y%m%d_%H%M%S}_{os.urandom(3).hex()}"
BARS = "▁▂▃▄▅▆▇█"


def policy(w, obs):
    i = 0
    h = obs
    for a, b in zip(SIZES, SIZES[1:]):
        m = w[i:i + a * b].reshape(a, b)
        i += a * b
        h = np.tanh(h @ m + w[i:i + b])
        i += b
    return int(np.argmax(h))


def play(args):
    """One agent for 3 episodes of a dodge-and-shoot game; returns fitness parts plus who did it and how long it took."""
    idx, w, seed = args
    t0 = time.perf_counter()
    kills = shots = steps = 0
    for ep in range(3):
        rng = np.random.default_rng([seed, ep])
        x, rocks = 0.0, rng.uniform(-1, 1, (5, 2))
        for _ in range(80):
            near = rocks[np.argmin(rocks[:, 1])]
            a = policy(w, np.array([x, near[0], near[1], near[0] - x, rocks[:, 0].mean(), 1.0]))
            x = float(np.clip(x + (-0.12, 0.12, 0.0)[a], -1, 1))
            if a == 2:
                shots += 1
                if abs(near[0] - x) < 0.15:
                    kills += 1
                    near[:] = rng.uniform(-1, 1), 1.0
            rocks[:, 1] -= 0.06
            hit = (rocks[:, 1] < -1) & (abs(rocks[:, 0] - x) < 0.12)
            steps += 1
            if hit.any():
                break
            low = rocks[:, 1] < -1
            rocks[low] = np.c_[rng.uniform(-1, 1, low.sum()), np.ones(low.sum())]
    return idx, 10.0 * kills + 0.5 * steps - 0.2 * shots, kills, shots, steps, os.getpid(), time.perf_counter() - t0


def spark(v):
    v = np.asarray(v, float)
    r = v.max() - v.min() or 1.0
    return "[" + "".join(BARS[int((a - v.min()) / r * 7)] for a in v) + "]"


def breed(rng, pop, fit):
    order = np.argsort(-fit, kind="stable")
    new = [pop[order[0]].copy(), pop[order[1]].copy()]
    while len(new) < POP:
        a, b = (pop[max(rng.integers(0, POP, 3), key=lambda i: fit[i])] for _ in range(2))
        child = np.where(rng.random(NW) < 0.5, a, b) + rng.normal(0, 0.2, NW) * (rng.random(NW) < 0.15)
        new.append(child)
    return np.array(new)


def main():
    rng = np.random.default_rng(99)
    pop = rng.normal(0, 0.7, (POP, NW))
    records, start = [], time.time()
    print(f"Session {SESSION} | population {POP} | workers {WORKERS} | main pid {os.getpid()}")
    with ProcessPoolExecutor(WORKERS) as ex:
        for g in range(1, GENS + 1):
            tg = time.time()
            res = list(ex.map(play, [(i, w, 500 + g) for i, w in enumerate(pop)]))
            eval_s = time.time() - tg
            fit = np.array([r[1] for r in res])
            load = {}
            for r in res:
                load[r[5]] = load.get(r[5], 0) + 1
            best = pop[int(np.argmax(fit))].copy()
            pop = breed(rng, pop, fit)
            gen_s = time.time() - tg
            eta = (time.time() - start) / g * (GENS - g)
            records.append(dict(generation=g, best=float(fit.max()), avg=float(fit.mean()), kills=float(np.mean([r[2] for r in res])),
                                steps=float(np.mean([r[4] for r in res])), accuracy=sum(r[2] for r in res) / max(1, sum(r[3] for r in res)),
                                eval_duration=eval_s, gen_duration=gen_s, timestamp=time.time(), workers=load,
                                cpu_s=sum(r[6] for r in res)))
            print(f"Gen {g:3d} | best {fit.max():7.1f} | avg {fit.mean():7.2f} | kills {records[-1]['kills']:5.2f} | {gen_s:5.2f}s "
                  f"(eval {100 * eval_s / gen_s:.0f}%) | {POP / eval_s:6.1f} agents/s | ETA {int(eta // 60):02d}:{eta % 60:04.1f} | "
                  + " ".join(f"w{p}:{n}" for p, n in load.items()), flush=True)
    with open("training_summary.md", "w") as f:
        f.write(f"# Training Summary Report\n\n**Generated:** {datetime.now():%Y-%m-%d %H:%M:%S}\n**Session:** `{SESSION}`\n\n## Quick Trend Overview\n\n```\n")
        for name, key in [("Best Fitness", "best"), ("Avg Fitness", "avg"), ("Avg Kills", "kills"), ("Avg Steps", "steps")]:
            v = [r[key] for r in records]
            f.write(f"{name + ':':<14}{v[0]:.1f} → {v[-1]:.1f}   {spark(v)}\n")
        f.write("```\n\n## Generations\n\n| Gen | Best | Avg | Accuracy | Time | Timestamp |\n|---|---|---|---|---|---|\n")
        for r in records:
            f.write(f"| {r['generation']} | {r['best']:.1f} | {r['avg']:.2f} | {r['accuracy']:.1%} | {r['gen_duration']:.2f}s | "
                    f"{datetime.fromtimestamp(r['timestamp']):%H:%M:%S} |\n")
        tot = time.time() - start
        f.write(f"\n- **Total Training Time:** {tot / 60:.1f} minutes\n- **Average Generation Time:** {tot / GENS:.2f}s\n"
                f"- **Slowest Generation:** {max(r['gen_duration'] for r in records):.2f}s\n- **Final Best Fitness:** {records[-1]['best']:.2f}\n")
    with open("champion.pkl", "wb") as f:
        pickle.dump({"session": SESSION, "saved": datetime.now(), "weights": best, "records": records}, f)
    np.save("champion_weights.npy", best)
    print(f"Training finished in {time.time() - start:.1f}s, best fitness {records[-1]['best']:.1f}, champion saved")


if __name__ == "__main__":
    main()
