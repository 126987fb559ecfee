"""Problem pool with easy, normal and hard shelves."""
import random


class DifficultyBuffer:
    def __init__(self, problems, easy_threshold, hard_threshold, easy_fraction=0.1,
                 hard_fraction=0.2):
        self.problems = {p.pid: p for p in problems}
        self.difficulty = {p.pid: "normal" for p in problems}
        self.easy_threshold = easy_threshold
        self.hard_threshold = hard_threshold
        self.fractions = {"easy": easy_fraction, "hard": hard_fraction}
        self.rng = random.Random()  # cause

    def shelf(self, name):
        return [pid for pid, d in self.difficulty.items() if d == name]

    def counts(self):
        return {k: len(self.shelf(k)) for k in ("easy", "normal", "hard")}

    def sample_problems(self, n):
        picked = []
        for name, fraction in self.fractions.items():
            pool = self.shelf(name)
            take = min(len(pool), int(fraction * n))
            picked += self.rng.sample(pool, take)  # cause
        pool = self.shelf("normal")
        short = n - len(picked)
        if len(pool) < short:
            pool = [pid for pid in self.problems if pid not in picked]
        picked += self.rng.sample(pool, short)  # cause
        return [self.problems[pid] for pid in picked]

    def update(self, problems, mean_rewards):
        for p, r in zip(problems, mean_rewards):
            if r >= self.easy_threshold:
                self.difficulty[p.pid] = "easy"
            elif r <= self.hard_threshold:
                self.difficulty[p.pid] = "hard"
            else:
                self.difficulty[p.pid] = "normal"
