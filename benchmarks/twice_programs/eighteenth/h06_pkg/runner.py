"""Training and evaluation loops."""
import csv
import time


def episode(env, agent, eps, learn, seed):
    obs, _ = env.reset(seed=seed)
    s = env.state_index(obs)
    total, done, info = 0.0, False, {}
    while not done:
        a = agent.act(s, eps)
        obs, r, done, _, info = env.step(a)
        s2 = env.state_index(obs)
        if learn:
            agent.update(s, a, r, s2, done)
        s, total = s2, total + r
    return total, info


def train(env, agent, episodes, seed, csv_path, window=100):
    rows, returns, scored = [], [], 0
    start = time.time()
    with open(csv_path, "w", newline="") as f:
        w = csv.DictWriter(f, ["episode", "epsilon", "return", "score_rate"])
        w.writeheader()
        for i in range(episodes):
            eps = agent.epsilon(i / episodes)
            total, info = episode(env, agent, eps, True, seed + i)
            returns.append(total)
            scored += info["scored"]
            if (i + 1) % window == 0:
                row = {"episode": i + 1, "epsilon": round(eps, 3),
                       "return": round(sum(returns[-window:]) / window, 4), "score_rate": scored / window}
                rows.append(row)
                w.writerow(row)
                scored = 0
    print(f"trained {episodes} episodes in {time.time() - start:.1f}s, last return {rows[-1]['return']}")
    return rows


def evaluate(env, agent, episodes, seed):
    returns, scored, turns = [], 0, 0
    for i in range(episodes):
        total, info = episode(env, agent, 0.0, False, seed + 10_000 + i)
        returns.append(total)
        scored += info["scored"]
        turns += info["turn"]
    mean = sum(returns) / episodes
    return {"mean_return": round(mean, 4), "score_rate": round(scored / episodes, 4),
            "mean_turns": round(turns / episodes, 3)}
