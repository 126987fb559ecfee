"""Tournament of food-collecting bots in a maze.

Modelled on https://github.com/ASPP/pelita/pull/703
Plays a round robin between bot strategies on random mazes and tabulates the results.
"""
import argparse
import itertools
import json
import logging
import random
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Optional

import networkx as nx
import pandas as pd

log = logging.getLogger("tournament")


@dataclass
class GameConfig:
    seed: int = 314
    width: int = 17
    height: int = 11
    food: int = 24
    rounds: int = 130
    games: int = 5


class Square(NamedTuple):
    x: int
    y: int
    occupant: Optional[str]


def make_maze(cfg, rng):
    graph = nx.grid_2d_graph(cfg.width, cfg.height)
    edges = sorted(graph.edges)
    tree = nx.Graph()
    tree.add_nodes_from(sorted(graph.nodes))
    for a, b in edges:
        tree.add_edge(a, b, weight=rng.random())
    maze = nx.minimum_spanning_tree(tree)
    for a, b in edges:
        if rng.random() < 0.25:
            maze.add_edge(a, b)
    return maze


@dataclass
class Game:
    maze: nx.Graph
    food: set
    bots: dict
    score: dict = field(default_factory=lambda: {"blue": 0, "red": 0})

    def squares(self, team):
        """Squares next to the bot that it may enter."""
        x, y = self.bots[team]
        other = next(t for t in self.bots if t != team)
        near = {Square(nx_, ny_, other if self.bots[other] == (nx_, ny_) else None)
                for nx_, ny_ in self.maze[(x, y)]}
        return near


class Bot:
    def __init__(self, team, rng):
        self.team = team
        self.rng = rng

    def distance_to_food(self, game, start):
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            node, d = queue.popleft()
            if node in game.food:
                return d
            for nxt in sorted(game.maze[node]):
                if nxt not in seen:
                    seen.add(nxt)
                    queue.append((nxt, d + 1))
        return 10 ** 6

    def choose(self, game):
        raise NotImplementedError


class RandomBot(Bot):
    def choose(self, game):
        options = list(game.squares(self.team))  # cause
        return self.rng.choice(options)


class GreedyBot(Bot):
    def choose(self, game):
        options = sorted(game.squares(self.team), key=lambda s: (s.x, s.y))
        return min(options, key=lambda s: self.distance_to_food(game, (s.x, s.y)))


class NoisyGreedyBot(GreedyBot):
    def choose(self, game):
        if self.rng.random() < 0.3:
            return self.rng.choice(list(game.squares(self.team)))  # cause
        return super().choose(game)


STRATEGIES = {"random": RandomBot, "greedy": GreedyBot, "noisy": NoisyGreedyBot}


def play(blue, red, cfg, seed):
    rng = random.Random(seed)
    maze = make_maze(cfg, rng)
    free = sorted(maze.nodes)
    food = set(rng.sample(free[1:-1], cfg.food))
    game = Game(maze, food, {"blue": free[0], "red": free[-1]})
    bots = {"blue": STRATEGIES[blue]("blue", rng), "red": STRATEGIES[red]("red", rng)}
    for turn in range(cfg.rounds):
        for team, bot in bots.items():
            square = bot.choose(game)
            if square.occupant is not None:
                game.bots[square.occupant] = free[0] if square.occupant == "blue" else free[-1]
                game.score[team] += 2
            game.bots[team] = (square.x, square.y)
            if game.bots[team] in game.food:
                game.food.remove(game.bots[team])
                game.score[team] += 1
            if not game.food:
                return game.score, turn
    return game.score, cfg.rounds


def tournament(cfg):
    rows = []
    for number, (blue, red) in enumerate(itertools.product(STRATEGIES, repeat=2)):
        for k in range(cfg.games):
            seed = cfg.seed + 1000 * number + k
            score, turns = play(blue, red, cfg, seed)
            rows.append({"blue": blue, "red": red, "game": k, "turns": turns,
                         "blue_score": score["blue"], "red_score": score["red"]})
        log.info("%s against %s done", blue, red)
    return pd.DataFrame(rows)


def ranking(frame):
    points = dict.fromkeys(STRATEGIES, 0)
    for row in frame.itertuples():
        if row.blue_score == row.red_score:
            points[row.blue] += 1
            points[row.red] += 1
        else:
            points[row.blue if row.blue_score > row.red_score else row.red] += 3
    return points


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--games", type=int, default=GameConfig.games)
    ap.add_argument("--seed", type=int, default=GameConfig.seed)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = GameConfig(seed=args.seed, games=args.games)
    t0 = time.perf_counter()
    frame = tournament(cfg)
    log.info("played %d games in %.2f s", len(frame), time.perf_counter() - t0)
    frame.to_csv("games.csv", index=False)
    points = ranking(frame)
    Path("ranking.json").write_text(json.dumps(points))
    print(frame.groupby(["blue", "red"])[["blue_score", "red_score", "turns"]].sum().to_string())
    print(points)


if __name__ == "__main__":
    main()
