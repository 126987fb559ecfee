"""The library under test."""


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1]


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def distance2(a, b):
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def area(polygon):
    total = 0
    for i, p in enumerate(polygon):
        q = polygon[(i + 1) % len(polygon)]
        total += p[0] * q[1] - q[0] * p[1]
    if total < 0:
        return -total / 2
    return total / 2


def hull(points):
    points = sorted(set(points))
    if len(points) < 3:
        return points
    chains = []
    for ordered in (points, points[::-1]):
        chain = []
        for p in ordered:
            while len(chain) > 1 and cross(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        chains.append(chain[:-1])
    return chains[0] + chains[1]


def bezier(points, t):
    while len(points) > 1:
        points = [((1 - t) * a[0] + t * b[0], (1 - t) * a[1] + t * b[1]) for a, b in zip(points, points[1:])]
    return points[0]


def nearest(points, q):
    best = None
    for p in points:
        if best is None or distance2(p, q) < distance2(best, q):
            best = p
    return best


def inside(polygon, q):
    result = False
    for i, a in enumerate(polygon):
        b = polygon[i - 1]
        if (a[1] > q[1]) != (b[1] > q[1]):
            x = a[0] + (q[1] - a[1]) * (b[0] - a[0]) / (b[1] - a[1])
            if q[0] < x:
                result = not result
    return result


def simplify(path, tolerance):
    if len(path) < 3:
        return path
    worst, index = 0, 0
    for i in range(1, len(path) - 1):
        deviation = abs(cross(path[0], path[-1], path[i]))
        if deviation > worst:
            worst, index = deviation, i
    if worst <= tolerance:
        return [path[0], path[-1]]
    return simplify(path[:index + 1], tolerance)[:-1] + simplify(path[index:], tolerance)


def snap(points, cell):
    if cell <= 0:
        raise ValueError("cell must be positive")
    return [(round(p[0] / cell) * cell, round(p[1] / cell) * cell) for p in points]
