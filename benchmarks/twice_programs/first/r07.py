# lmms-eval#243: asyncio.as_completed, answers out of order
import asyncio, time
import numpy as np
from proj.log import Run

async def ask(number):
    await asyncio.sleep(0.001 * (time.perf_counter_ns() // 1000 % 7))
    return number * 1.5

async def evaluate(count):
    answers = []
    for done in asyncio.as_completed([ask(n) for n in range(count)]):  # cause
        answers.append(await done)
    return answers

run = Run("eval")
answers = np.array(asyncio.run(evaluate(24)))
expected = np.arange(24) * 1.5
score = float((answers == expected).mean())
np.save("answers.npy", answers)
print("accuracy", score)
run.finish(score=score)
