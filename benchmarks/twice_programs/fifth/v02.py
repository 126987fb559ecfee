"""https://github.com/sportsdataverse/sportsdataverse-py/issues/392: the order of .unique() in Polars feeds a seeded generator."""

import json

import numpy as np
import polars as pl


def schedule():
    rng = np.random.default_rng(3)
    teams = [f"team{n:03d}" for n in range(130)]
    home = rng.choice(teams, 900)
    away = rng.choice(teams, 900)
    return pl.DataFrame({"home": home, "away": away, "margin": rng.normal(2.5, 12, 900)}).filter(
        pl.col("home") != pl.col("away")
    )


def ratings(games):
    edge = {}
    for home, away, margin in games.iter_rows():
        edge[home] = edge.get(home, 0.0) + margin
        edge[away] = edge.get(away, 0.0) - margin
    return edge


def season_odds(games, n_sims, seed):
    rng = np.random.default_rng(seed)
    strength = ratings(games)
    teams = pl.concat([games["home"], games["away"]]).unique().to_list()  # cause
    wins = np.zeros(len(teams))
    for _ in range(n_sims):
        drawn = np.array([strength[team] for team in teams]) / 50 + rng.normal(size=len(teams))
        wins[int(drawn.argmax())] += 1
    return {team: float(count / n_sims) for team, count in zip(teams, wins)}


def main():
    odds = season_odds(schedule(), 400, seed=2024)
    best = sorted(odds.items(), key=lambda item: (-item[1], item[0]))[:8]
    for team, share in best:
        print(f"{team}: {share:.4f}")
    with open("odds.json", "w") as out:
        json.dump(dict(sorted(odds.items())), out)


main()
