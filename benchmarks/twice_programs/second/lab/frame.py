import numpy as np, pandas as pd

def patients(rows=120):
    rng = np.random.RandomState(3)
    return pd.DataFrame({"age": rng.randint(20, 80, rows), "dose": rng.rand(rows).round(3), "group": rng.randint(0, 4, rows), "out": rng.rand(rows).round(4)})
