"""Beam search over the order in which cards are played.

Report: https://github.com/Torch1230/CombatSolver/issues/108
A small portfolio of search members explores the same combat and the best route is kept.
"""
import argparse
import heapq
import json
import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

log = logging.getLogger("combat")


@dataclass(frozen=True)
class Card:
    name: str
    cost: int
    damage: int
    block: int
    poison: int
    strength: int


@dataclass(frozen=True)
class State:
    enemy: int
    player: int
    energy: int
    turn: int
    poison: int
    strength: int
    block: int
    hand: tuple
    route: tuple

    def value(self):
        return 3 * self.player - self.enemy + 2 * self.poison + 4 * self.strength + self.block // 2


@dataclass
class Profile:
    name: str
    width: int
    branching: int
    soft_budget_ms: int


PORTFOLIO = [
    Profile("baseline", 60, 4, 500),
    Profile("wide", 260, 6, 900),
    Profile("deep", 120, 9, 900),
]


def deck(seed: int, size: int = 26):
    rng = np.random.default_rng(seed)
    cards = []
    for i in range(size):
        kind = int(rng.integers(4))
        power = int(rng.integers(3, 11))
        cards.append(
            Card(
                f"c{i:02d}",
                int(rng.integers(0, 3)),
                power if kind == 0 else 0,
                power if kind == 1 else 0,
                power // 2 if kind == 2 else 0,
                1 + power // 5 if kind == 3 else 0,
            )
        )
    return cards


class Combat:
    def __init__(self, seed: int):
        self.cards = deck(seed)
        rng = np.random.default_rng(seed + 1)
        self.draws = [tuple(sorted(rng.permutation(len(self.cards))[:7].tolist())) for _ in range(60)]
        self.attacks = rng.integers(4, 19, size=60).tolist()

    def start(self):
        return State(2600, 300, 3, 0, 0, 0, 0, self.draws[0], ())

    def play(self, s: State, index: int):
        c = self.cards[index]
        hand = tuple(h for h in s.hand if h != index)
        dealt = (c.damage + s.strength) if c.damage else 0
        return replace(
            s,
            enemy=max(0, s.enemy - dealt),
            energy=s.energy - c.cost,
            block=s.block + c.block,
            poison=s.poison + c.poison,
            strength=s.strength + c.strength,
            hand=hand,
            route=s.route + (c.name,),
        )

    def end_turn(self, s: State):
        hit = max(0, self.attacks[s.turn % 60] - s.block)
        turn = s.turn + 1
        return replace(
            s,
            enemy=max(0, s.enemy - s.poison),
            poison=max(0, s.poison - 1),
            player=s.player - hit,
            energy=3,
            block=0,
            turn=turn,
            hand=self.draws[turn % 60],
            route=s.route + ("|",),
        )

    def successors(self, s: State, branching: int):
        options = [i for i in s.hand if self.cards[i].cost <= s.energy]
        options.sort(key=lambda i: (-(self.cards[i].damage + self.cards[i].poison * 2 + self.cards[i].block), i))
        out = [self.play(s, i) for i in options[:branching]]
        out.append(self.end_turn(s))
        return out


class BeamSolver:
    def __init__(self, combat: Combat, profile: Profile):
        self.combat = combat
        self.profile = profile
        self.expanded = 0

    def out_of_time(self, started: float):
        return (time.perf_counter() - started) * 1000 >= self.profile.soft_budget_ms  # cause

    def solve(self):
        started = time.perf_counter()
        beam = [self.combat.start()]
        best = beam[0]
        reason = "frontier"
        while beam:
            nxt = []
            for state in beam:
                if self.out_of_time(started):
                    reason = "time_limit"
                    break
                self.expanded += 1
                for s in self.combat.successors(state, self.profile.branching):
                    if s.player > 0 and s.turn < 400:
                        nxt.append(s)
            if reason == "time_limit":
                break
            beam = heapq.nlargest(self.profile.width, nxt, key=lambda s: (s.value(), s.route))
            if beam and beam[0].value() > best.value():
                best = beam[0]
        return best, reason


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=108)
    ap.add_argument("--out", default="route.json")
    ns = ap.parse_args()
    combat = Combat(ns.seed)
    rows = []
    for profile in PORTFOLIO:
        solver = BeamSolver(combat, profile)
        best, reason = solver.solve()
        log.info("%s: %d expanded, %s", profile.name, solver.expanded, reason)
        rows.append(
            {
                "member": profile.name,
                "value": best.value(),
                "turns": best.turn,
                "enemy": best.enemy,
                "player": best.player,
                "total_expanded": solver.expanded,
                "route": "".join(c if c == "|" else c + " " for c in best.route),
            }
        )
    chosen = max(rows, key=lambda r: (r["value"], r["member"]))
    Path(ns.out).write_text(json.dumps({"chosen": chosen["member"], "members": rows}, indent=1))
    print("chosen", chosen["member"], "value", chosen["value"], "turns", chosen["turns"])
    print("expanded", [r["total_expanded"] for r in rows])


if __name__ == "__main__":
    main()
