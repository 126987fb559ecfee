"""Team and start-position generators used at every reset."""
import numpy as np


class WeightedTeams:
    def __init__(self, game_map):
        self.map = game_map
        self.rng = np.random.default_rng()  # cause

    def generate(self):
        types = self.map.unit_types
        ally = self.rng.choice(types, size=self.map.allies, p=self.map.weights)  # cause
        enemy = list(ally)
        while len(enemy) < self.map.enemies:
            enemy.append(types[len(enemy) % len(types)])
        return {"ally": list(ally), "enemy": enemy[: self.map.enemies]}


class SurroundedStart:
    """Allies in the middle, enemies on a ring."""

    def __init__(self, game_map):
        self.map = game_map

    def generate(self):
        centre = self.map.size / 2
        ally = [(centre + np.random.uniform(-1, 1), centre + np.random.uniform(-1, 1))
                for _ in range(self.map.allies)]
        angles = np.random.uniform(0, 2 * np.pi, size=self.map.enemies)
        radius = self.map.size * 0.42
        enemy = [(centre + radius * np.cos(a), centre + radius * np.sin(a)) for a in angles]
        return {"ally": ally, "enemy": enemy}


def get_distribution(key):
    return {"weighted_teams": WeightedTeams, "surrounded": SurroundedStart}[key]
