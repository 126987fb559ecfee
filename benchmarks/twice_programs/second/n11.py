# pyPESTO#1664: optima of a pool of processes are kept as they come
import os, time
from concurrent.futures import ProcessPoolExecutor, as_completed
from lab.log import Run

def optimum(start):
    time.sleep(0.003 * (time.time_ns() // 1000 % 6))
    return start, (start - 3) ** 2 * 0.1

def main():
    run = Run("starts")
    with ProcessPoolExecutor(2) as pool:
        futures = [pool.submit(optimum, n) for n in range(10)]
        found = [future.result() for future in as_completed(futures)]  # cause
    value = sum(n * v for n, (_, v) in enumerate(found))
    run.finish(weighted=value)

if __name__ == "__main__":
    main()
