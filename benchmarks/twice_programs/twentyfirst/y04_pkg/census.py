"""A made-up census extract with dependent categorical columns."""
import numpy as np
import pandas as pd

DOMAIN = {
    "region": ["N", "E", "S", "W", "C"],
    "age": ["0-17", "18-34", "35-54", "55-74", "75+"],
    "sex": ["f", "m"],
    "education": ["none", "school", "college", "degree"],
    "employed": ["no", "part", "full"],
    "income": ["low", "mid", "high", "top"],
    "tenure": ["own", "rent", "social"],
    "cars": ["0", "1", "2+"],
}


def _pick(rng, logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)


def make_census(n, seed):
    rng = np.random.default_rng(seed)
    col = {"region": rng.choice(5, n, p=[.3, .15, .25, .2, .1]),
           "age": rng.choice(5, n, p=[.2, .24, .27, .2, .09]),
           "sex": rng.choice(2, n)}
    age = col["age"][:, None]
    col["education"] = _pick(rng, np.array([[0.4, 1, 0.7, 0.3]]) + (age == 0) * np.array([[2, 1, -3, -5]]))
    edu = col["education"][:, None]
    col["employed"] = _pick(rng, np.array([[0.2, 0, 1.0]]) + ((age == 0) | (age == 4)) * np.array([[3, 0, -3]])
                            + edu * np.array([[-.2, 0, .25]]))
    emp = col["employed"][:, None]
    col["income"] = _pick(rng, np.array([[1, 1, 0, -1.5]]) + emp * np.array([[-.8, .2, .5, .6]])
                          + edu * np.array([[-.3, 0, .35, .5]]))
    inc = col["income"][:, None]
    col["tenure"] = _pick(rng, np.array([[0.3, 0.6, 0.2]]) + inc * np.array([[.5, 0, -.8]])
                          + age * np.array([[.3, -.2, 0]]))
    col["cars"] = _pick(rng, np.array([[0.8, 0.7, -.4]]) + inc * np.array([[-.5, .1, .5]])
                        + (col["region"][:, None] == 4) * np.array([[1.5, 0, -1]]))
    df = pd.DataFrame({c: np.array(DOMAIN[c])[col[c]] for c in DOMAIN})
    return df, DOMAIN
