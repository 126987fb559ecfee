"""The environment."""
import numpy as np

from .distributions import get_distribution
from .maps import UNIT_STATS

ACTIONS = ("hold", "advance", "retreat", "attack_near", "attack_weak")


class Unit:
    def __init__(self, kind, position):
        stats = UNIT_STATS[kind]
        self.kind = kind
        self.position = np.array(position, dtype=float)
        self.health = stats["health"]
        self.damage = stats["damage"]
        self.range = stats["range"]

    @property
    def alive(self):
        return self.health > 0


class SkirmishEnv:
    def __init__(self, game_map, capability_config):
        self.map = game_map
        self.distributions = {
            key: get_distribution(name)(game_map) for key, name in capability_config.items()
        }
        self.steps = 0

    def reset(self):
        teams = self.distributions["teams"].generate()
        starts = self.distributions["starts"].generate()
        self.allies = [Unit(k, p) for k, p in zip(teams["ally"], starts["ally"])]
        self.enemies = [Unit(k, p) for k, p in zip(teams["enemy"], starts["enemy"])]
        self.steps = 0
        return self.observe()

    def observe(self):
        return [self._state(i) for i in range(self.map.allies)]

    def _state(self, i):
        me = self.allies[i]
        if not me.alive:
            return None
        foes = [e for e in self.enemies if e.alive]
        nearest = min(np.linalg.norm(e.position - me.position) for e in foes) if foes else 9.0
        in_range = int(nearest <= me.range)
        health = int(min(2, me.health // 3))
        margin = sum(a.alive for a in self.allies) - len(foes)
        return (me.kind, in_range, health, int(np.clip(margin, -2, 2)))

    def _act(self, unit, action, others):
        foes = [o for o in others if o.alive]
        if not foes:
            return 0.0
        distances = [np.linalg.norm(o.position - unit.position) for o in foes]
        near = foes[int(np.argmin(distances))]
        if action in ("advance", "retreat"):
            direction = near.position - unit.position
            direction /= np.linalg.norm(direction) + 1e-9
            unit.position += direction * (0.8 if action == "advance" else -0.8)
            unit.position = unit.position.clip(0, self.map.size)
            return 0.0
        if action.startswith("attack"):
            reachable = [o for o, d in zip(foes, distances) if d <= unit.range]
            if not reachable:
                return -0.05
            target = near if action == "attack_near" else min(reachable, key=lambda o: o.health)
            if target not in reachable:
                return -0.05
            dealt = unit.damage if np.random.random() < 0.85 else 0.0
            target.health -= dealt
            return dealt * 0.1 + (0.5 if not target.alive else 0.0)
        return 0.0

    def step(self, actions):
        self.steps += 1
        reward = 0.0
        for unit, action in zip(self.allies, actions):
            if unit.alive and action is not None:
                reward += self._act(unit, ACTIONS[action], self.enemies)
        for unit in self.enemies:
            if unit.alive:
                foes = [a for a in self.allies if a.alive]
                close = any(np.linalg.norm(a.position - unit.position) <= unit.range for a in foes)
                reward -= 0.8 * self._act(unit, "attack_near" if close else "advance", self.allies)
        won = not any(e.alive for e in self.enemies)
        lost = not any(a.alive for a in self.allies)
        if won:
            reward += 2.0
        done = won or lost or self.steps >= self.map.limit
        return self.observe(), reward, done, {"won": won}
