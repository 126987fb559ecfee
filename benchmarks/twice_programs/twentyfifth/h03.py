"""Scan matching of a recorded drive: play back lidar scans and build submaps.

A player node replays the scans of a simulated robot drive at a fixed rate and
publishes them together with wheel odometry; a mapping node takes the scans,
aligns each with its current submap by a coarse-to-fine search, and starts a
new submap after a given way.  At the end it writes the estimated trajectory
and prints its error against the simulated ground truth.

Modelled on: https://github.com/rsasaki0109/lidar_slam_ros2/pull/238
"""
import queue
import threading
import time

import numpy as np

N_SCANS = 300
RATE_HZ = 120.0
BEAMS = 60
QUEUE_DEPTH = 5
SUBMAP_SPACING = 1.5


class Recording:
    """Ground truth, odometry and scans of a drive around a walled field."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        t = np.linspace(0.0, 2 * np.pi, N_SCANS)
        self.truth = np.column_stack([6 * np.cos(t), 4 * np.sin(t), t + np.pi / 2])
        step = np.diff(self.truth, axis=0)
        noisy = step + rng.normal(0.0, [0.012, 0.012, 0.003], step.shape)
        self.odometry = np.vstack([self.truth[:1], self.truth[0] + np.cumsum(noisy, axis=0)])
        self.posts = rng.uniform([-9, -7], [9, 7], (160, 2))
        self.noise = rng.normal(0.0, 0.02, (N_SCANS, BEAMS, 2))

    def scan(self, i):
        x, y, heading = self.truth[i]
        delta = self.posts - (x, y)
        nearest = np.argsort((delta ** 2).sum(axis=1), kind="stable")[:BEAMS]
        c, s = np.cos(-heading), np.sin(-heading)
        local = delta[nearest] @ np.array([[c, s], [-s, c]])
        return local + self.noise[i]


class Player(threading.Thread):
    def __init__(self, recording, topic):
        super().__init__(daemon=True)
        self.recording = recording
        self.topic = topic

    def run(self):
        begin = time.monotonic()
        for i in range(N_SCANS):
            delay = begin + i / RATE_HZ - time.monotonic()
            if delay > 0:
                time.sleep(delay)
            message = (i, self.recording.odometry[i], self.recording.scan(i))
            publish(self.topic, message)
        self.topic.put(None)


def publish(topic, message):
    """Hand a message to the subscriber."""
    while True:
        try:
            topic.put_nowait(message)  # cause
            return
        except queue.Full:
            try:
                topic.get_nowait()
            except queue.Empty:
                pass


class Mapper:
    def __init__(self):
        self.submap = None
        self.submap_origin = None
        self.submaps = 0
        self.pose = None
        self.last_odometry = None
        self.track = []

    @staticmethod
    def to_world(pose, points):
        c, s = np.cos(pose[2]), np.sin(pose[2])
        return points @ np.array([[c, s], [-s, c]]) + pose[:2]

    def cost(self, pose, points):
        world = self.to_world(pose, points)
        d2 = ((world[:, None, :] - self.submap[None, :, :]) ** 2).sum(axis=2)
        return np.minimum(d2.min(axis=1), 0.25).mean()

    def align(self, guess, points):
        best, best_cost = guess, self.cost(guess, points)
        for width in (0.08, 0.04, 0.02):
            for dx in (-width, 0.0, width):
                for dy in (-width, 0.0, width):
                    for da in (-width / 4, 0.0, width / 4):
                        pose = best + (dx, dy, da)
                        cost = self.cost(pose, points)
                        if cost < best_cost - 1e-9:
                            best, best_cost = pose, cost
        return best

    def handle(self, index, odometry, points):
        if self.pose is None:
            self.pose = odometry.copy()
        else:
            self.pose = self.align(self.pose + odometry - self.last_odometry, points)
        self.last_odometry = odometry
        moved = self.submap is None or np.hypot(*(self.pose[:2] - self.submap_origin)) > SUBMAP_SPACING
        if moved:
            self.submap = self.to_world(self.pose, points)
            self.submap_origin = self.pose[:2].copy()
            self.submaps += 1
        self.track.append((index, *self.pose))


def main():
    recording = Recording(238)
    topic = queue.Queue(maxsize=QUEUE_DEPTH)
    mapper = Mapper()
    started = time.monotonic()
    Player(recording, topic).start()
    while True:
        message = topic.get()
        if message is None:
            break
        mapper.handle(*message)
    print(f"playback took {time.monotonic() - started:.2f} s")

    track = np.array(mapper.track)
    error = np.hypot(*(track[:, 1:3] - recording.truth[track[:, 0].astype(int), :2]).T)
    np.savetxt("trajectory.txt", track, fmt=["%d", "%.6f", "%.6f", "%.6f"])
    print("scans used", len(track), "submaps", mapper.submaps)
    print(f"APE rmse {np.sqrt((error ** 2).mean()):.6f} max {error.max():.6f}")
    print("final pose", " ".join(f"{v:.5f}" for v in track[-1, 1:]))


if __name__ == "__main__":
    main()
