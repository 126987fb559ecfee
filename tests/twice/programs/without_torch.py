"""Programs without torch, by the first argument."""

import random
import sys
import time

if sys.argv[1] == "same":
    print("done in", f"{time.perf_counter():.6f} s")
    with open("result.txt", "w") as file:
        file.write("42\n")
elif sys.argv[1] == "hang":
    print("waiting", flush=True)
    time.sleep(3600)
elif sys.argv[1] == "clock":
    random.seed(time.time_ns())
    print(random.random())
elif sys.argv[1] == "system":
    for _ in range(20):
        random.SystemRandom().randrange(33)
elif sys.argv[1] == "counts":  # how often it was run before: in the file of that name
    with open(sys.argv[2], "ab") as file:
        file.write(b"x")
        number = file.tell()
    how, at = sys.argv[3], int(sys.argv[4])
    if number == at:
        if how == "status":
            sys.exit(3)
        print("otherwise", file=sys.stderr if how == "stderr" else sys.stdout)
elif sys.argv[1] == "pool":
    from multiprocessing.pool import ThreadPool

    with ThreadPool(2) as pool:
        print(pool.map(abs, [-1, 2]))
