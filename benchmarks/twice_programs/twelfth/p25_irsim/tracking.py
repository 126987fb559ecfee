"""Pure pursuit path tracking for a unicycle robot."""
import numpy as np


class PurePursuit:
    def __init__(self, path, lookahead, speed):
        seg = np.linalg.norm(np.diff(path, axis=0), axis=1)
        s = np.concatenate([[0], np.cumsum(seg)])
        dense = np.linspace(0, s[-1], max(2, int(s[-1] / 0.1)))
        self.points = np.column_stack([np.interp(dense, s, path[:, k]) for k in (0, 1)])
        self.lookahead, self.speed = lookahead, speed
        self.cursor = 0

    def command(self, pose):
        while (self.cursor < len(self.points) - 1 and
               np.linalg.norm(self.points[self.cursor] - pose[:2]) < self.lookahead):
            self.cursor += 1
        dx, dy = self.points[self.cursor] - pose[:2]
        alpha = np.arctan2(dy, dx) - pose[2]
        alpha = (alpha + np.pi) % (2 * np.pi) - np.pi
        return self.speed, 2 * self.speed * np.sin(alpha) / self.lookahead


def simulate(env, controller, dt, limit=800):
    first = controller.points[1] - controller.points[0]
    pose = np.array([*env.start, np.arctan2(first[1], first[0])])
    track = [pose.copy()]
    for _ in range(limit):
        v, w = controller.command(pose)
        pose = pose + dt * np.array([v * np.cos(pose[2]), v * np.sin(pose[2]), w])
        track.append(pose.copy())
        if np.linalg.norm(pose[:2] - env.goal) < 0.4:
            break
    return np.array(track)
