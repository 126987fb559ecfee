"""A plinko board: balls fall from fixed points through rows of pegs into baskets.

The game loop runs at 250 frames a second for a few seconds without a window;
at the end it writes the basket counts and pays out the score.

Modelled on: https://github.com/liabru/matter-js/issues/885
"""
import json
import time

import numpy as np

FPS = 250
PLAY_SECONDS = 4.0
GRAVITY = 9.0
BOUNCE = 0.62
PEG_RADIUS = 0.12
BALL_RADIUS = 0.09
WIDTH = 12.0
ROWS = 11
BASKETS = 12
PAYOUT = [50, 20, 8, 4, 2, 1, 1, 2, 4, 8, 20, 50]


def build_pegs():
    pegs = []
    for row in range(ROWS):
        shift = 0.5 if row % 2 else 0.0
        for k in range(int(WIDTH) + 1):
            x = k + shift
            if 0.2 < x < WIDTH - 0.2:
                pegs.append((x, 11.0 - row * 0.9))
    return np.array(pegs)


class World:
    def __init__(self, drops):
        self.pos = np.array(drops, dtype=float)
        self.vel = np.zeros_like(self.pos)
        self.landed = np.full(len(drops), -1)
        self.pegs = build_pegs()
        self.time = 0.0
        self.hits = 0

    def step(self, dt):
        live = self.landed < 0
        self.vel[live, 1] -= GRAVITY * dt
        self.pos[live] += self.vel[live] * dt
        self.collide_pegs(live)
        self.collide_walls(live)
        self.catch(live)
        self.time += dt

    def collide_pegs(self, live):
        delta = self.pos[:, None, :] - self.pegs[None, :, :]
        dist = np.sqrt((delta ** 2).sum(axis=2))
        reach = PEG_RADIUS + BALL_RADIUS
        balls, pegs = np.nonzero((dist < reach) & live[:, None])
        for ball, peg in zip(balls, pegs):
            d = max(dist[ball, peg], 1e-6)
            normal = delta[ball, peg] / d
            speed = self.vel[ball] @ normal
            self.pos[ball] += normal * (reach - d)
            if speed < 0:
                self.vel[ball] -= (1 + BOUNCE) * speed * normal
                self.hits += 1

    def collide_walls(self, live):
        left = live & (self.pos[:, 0] < BALL_RADIUS)
        right = live & (self.pos[:, 0] > WIDTH - BALL_RADIUS)
        self.pos[left, 0] = BALL_RADIUS
        self.pos[right, 0] = WIDTH - BALL_RADIUS
        hit = left | right
        self.vel[hit, 0] *= -BOUNCE

    def catch(self, live):
        down = live & (self.pos[:, 1] <= 0.0)
        self.landed[down] = np.clip(self.pos[down, 0] / WIDTH * BASKETS, 0, BASKETS - 1).astype(int)


class Game:
    """The loop that drives the world, one step for each frame."""

    def __init__(self, world):
        self.world = world
        self.frame = 0
        self.total_frames = int(PLAY_SECONDS * FPS)

    def run(self):
        frame_time = 1.0 / FPS
        last = time.perf_counter() - frame_time
        while self.frame < self.total_frames:
            now = time.perf_counter()
            dt = now - last  # cause
            last = now
            self.world.step(dt)
            self.frame += 1
            if self.frame % FPS == 0:
                still = int((self.world.landed < 0).sum())
                print(f"second {self.frame // FPS}: balls still falling {still}")
            spare = frame_time - (time.perf_counter() - now)
            if spare > 0:
                time.sleep(spare)


def drop_points():
    xs = np.linspace(1.05, WIDTH - 1.05, 40)
    return [(x, 11.6 + 0.05 * (k % 5)) for k, x in enumerate(xs)]


def score(landed):
    counts = np.bincount(landed[landed >= 0], minlength=BASKETS)
    return counts, int(sum(c * p for c, p in zip(counts, PAYOUT)))


def main():
    began = time.time()
    world = World(drop_points())
    game = Game(world)
    game.run()
    counts, points = score(world.landed)
    print("baskets: " + " ".join(f"{c:2d}" for c in counts))
    print(f"score: {points}, peg hits: {world.hits}, landed: {int(counts.sum())}")
    print(f"mean x of the balls: {world.pos[:, 0].mean():.9f}")
    with open("plinko.json", "w") as f:
        json.dump({"baskets": counts.tolist(), "score": points,
                   "x": [round(float(x), 6) for x in world.pos[:, 0]]}, f, indent=1)
    print(f"played in {time.time() - began:.2f} s")


if __name__ == "__main__":
    main()
