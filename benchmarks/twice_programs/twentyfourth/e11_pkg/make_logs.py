"""Write synthetic access logs of several hosts to a folder."""
import os
import random
import sys

PATHS = ["/", "/search", "/item", "/cart", "/login", "/help", "/static/app.js", "/api/v1/list"]
CODES = [200, 200, 200, 200, 304, 404, 500]


def write_host(folder, host, rnd, n_lines):
    t = 1_700_000_000
    with open(os.path.join(folder, "%s.log" % host), "w") as handle:
        for _ in range(n_lines):
            t += rnd.randint(0, 4)
            client = "10.0.%d.%d" % (rnd.randrange(6), rnd.randrange(40))
            path = rnd.choice(PATHS)
            code = rnd.choice(CODES)
            size = int(rnd.lognormvariate(7.5, 1.2))
            handle.write("%d %s %s %d %d\n" % (t, client, path, code, size))


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    rnd = random.Random(seed)
    for number in range(10):
        write_host(folder, "web%02d" % number, rnd, 3000 + rnd.randrange(400))


if __name__ == "__main__":
    main()
