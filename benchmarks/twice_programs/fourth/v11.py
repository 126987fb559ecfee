"""https://github.com/adriennekline/psmpy/issues/18: the library is seeded; the user's own groupby().sample is not."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression


def cohort(seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 80, 400), "bmi": rng.normal(26, 4, 400)})
    table["treated"] = (rng.random(400) < 0.3).astype(int)
    table["outcome"] = table.age * 0.1 + table.treated * 2 + rng.normal(size=400)
    return table


def balance(table, count):
    picked = table.groupby("treated", group_keys=False).sample(n=count)  # cause
    return picked.reset_index(drop=True)


def match(table, seed):
    model = LogisticRegression(random_state=seed).fit(table[["age", "bmi"]], table.treated)
    table = table.assign(score=model.predict_proba(table[["age", "bmi"]])[:, 1])
    treated = table[table.treated == 1].sample(frac=1, random_state=seed)
    control = table[table.treated == 0]
    pairs = [(row.outcome, control.loc[(control.score - row.score).abs().idxmin()].outcome) for row in treated.itertuples()]
    return float(np.mean([a - b for a, b in pairs]))


def main():
    table = balance(cohort(0), 80)
    effect = match(table, 0)
    print(f"average treatment effect {effect:.6f}")
    table.to_csv("matched.csv", index=False)


main()
