"""Test suites; each is a function that exercises the library."""
import random

import geometry as g


def cloud(seed, n=60):
    rng = random.Random(seed)
    return [(rng.randint(0, 400), rng.randint(0, 400)) for _ in range(n)]


def points():
    p = cloud(1)
    for q in cloud(2):
        assert g.nearest(p, q) in p
        assert g.dot(q, (0, 0)) == 0


def polygons():
    for seed in range(25):
        outline = g.hull(cloud(seed, 20))
        assert g.area(outline) > 0
        assert not g.inside(outline, (-5, -5))


def hulls():
    for seed in range(20):
        outline = g.hull(cloud(seed, 50))
        assert g.area(outline[::-1]) == g.area(outline)
    assert g.hull([(0, 0), (1, 1)]) == [(0, 0), (1, 1)]


def curves():
    for seed in range(60):
        control = cloud(seed, 5)
        path = [g.bezier(control, t / 30) for t in range(31)]
        assert len(g.simplify(path, 500)) <= len(path)
        assert g.dot(path[0], (1, 0)) == control[0][0]


def grids():
    for seed in range(60):
        snapped = g.snap(cloud(seed), 10)
        assert g.nearest(snapped, snapped[0]) == snapped[0]
    try:
        g.snap([], 0)
    except ValueError:
        pass


def meshes():
    for seed in range(20):
        outline = g.hull(g.snap(cloud(seed), 20))
        assert g.simplify(outline, 0)
        centre = g.bezier(outline[:2], 0.5)
        g.inside(outline, centre)
