"""Access-log lines."""
import random

PATHS = ["/", "/login", "/api/items", "/api/orders", "/static/app.js", "/health"]
HOSTS = [f"10.0.{k // 8}.{k % 8 + 1}" for k in range(40)]


def generate_events(n, seed):
    rng = random.Random(seed)
    for k in range(n):
        status = rng.choices([200, 304, 404, 500, 503], [80, 6, 8, 4, 2])[0]
        latency = rng.lognormvariate(3.2, 0.8) * (2.5 if status >= 500 else 1.0)
        size = int(rng.paretovariate(1.3) * 400)
        yield {"message": f"{rng.choice(HOSTS)} GET {rng.choice(PATHS)} "
                          f"{status} {size} {latency:.3f}",
               "offset": k}
