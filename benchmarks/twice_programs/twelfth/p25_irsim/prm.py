"""Probabilistic road map planner."""
import heapq

import numpy as np
from scipy.spatial import cKDTree


class PRMPlanner:
    def __init__(self, env, robot_radius, n_sample=200, n_knn=8, max_edge_len=6.0):
        self.env = env
        self.rr = robot_radius
        self.n_sample = n_sample
        self.n_knn = n_knn
        self.max_edge_len = max_edge_len
        self.n_edges = 0

    def planning(self, start, goal, rng=None):
        points = self.sample_points(start, goal, rng)
        graph = self.generate_road_map(points)
        route = self.dijkstra(graph, points, len(points) - 2, len(points) - 1)
        return None if route is None else points[route]

    def sample_points(self, start, goal, rng=None):
        if rng is None:
            rng = np.random.default_rng()  # cause
        points = []
        while len(points) < self.n_sample:
            p = rng.random(2) * [self.env.width, self.env.height]  # cause
            if self.env.is_free(p, self.rr)[0]:
                points.append(p)
        return np.array(points + [start, goal])

    def generate_road_map(self, points):
        tree = cKDTree(points)
        graph = [[] for _ in points]
        for i, p in enumerate(points):
            dist, idx = tree.query(p, k=self.n_knn + 1)
            for d, j in zip(dist[1:], idx[1:]):
                if d <= self.max_edge_len and self.env.edge_free(p, points[j], self.rr):
                    graph[i].append(int(j))
                    graph[j].append(i)
        graph = [sorted(set(n)) for n in graph]
        self.n_edges = sum(map(len, graph)) // 2
        return graph

    @staticmethod
    def dijkstra(graph, points, source, target):
        best = {source: 0.0}
        parent = {}
        heap = [(0.0, source)]
        while heap:
            cost, u = heapq.heappop(heap)
            if u == target:
                break
            if cost > best[u]:
                continue
            for v in graph[u]:
                c = cost + float(np.linalg.norm(points[u] - points[v]))
                if c < best.get(v, np.inf):
                    best[v] = c
                    parent[v] = u
                    heapq.heappush(heap, (c, v))
        if target not in best:
            return None
        route = [target]
        while route[-1] != source:
            route.append(parent[route[-1]])
        return route[::-1]
