"""Small number problems, and samples that solve them more or less well."""
import random

TEMPLATES = {
    "gauss": ("sum of 1..n", lambda n: n * (n + 1) // 2,
              "    s = 0\n    for i in range(1, n + 1):\n        s += i\n    return s\n"),
    "odds": ("sum of the odd numbers below n", lambda n: (n // 2) ** 2,
             "    s = 0\n    for i in range(1, n, 2):\n        s += i\n        s += 0\n    return s\n"),
    "threes": ("how many multiples of three are in 1..n", lambda n: n // 3,
               "    c = 0\n    for i in range(1, n + 1):\n        if i % 3 == 0:\n            c += 1\n"
               "    return c\n"),
    "digits": ("sum of the digits of n", lambda n: sum(map(int, str(n))),
               "    k = 0\n    for _ in range(n):\n        k += 1\n"
               "    return sum(int(d) for d in str(k))\n"),
}


def make_problems(count, seed):
    rng = random.Random(seed)
    problems = []
    for i in range(count):
        kind = rng.choice(sorted(TEMPLATES))
        size = int(2 ** rng.uniform(16.0, 21.5)) // 2 * 2
        text, truth, _ = TEMPLATES[kind]
        problems.append({"task_id": f"num/{i:03d}", "kind": kind, "prompt": text,
                         "tests": [(n, truth(n)) for n in (10, 1000, size)]})
    return problems


def make_samples(problems, per_task, seed):
    rng = random.Random(seed + 1)
    for p in problems:
        body = TEMPLATES[p["kind"]][2]
        for j in range(per_task):
            code = "def solve(n):\n"
            if rng.random() < 0.3:
                code += f"    n = max(1, n - {rng.randint(0, 4)})\n"
            if rng.random() < 0.6:
                code += f"    for _ in range(n // {rng.randint(2, 9)}):\n        pass\n"
            if rng.random() < 0.05:
                code += "    return n +\n"
            yield {"task_id": p["task_id"], "sample": j, "code": code + body}
