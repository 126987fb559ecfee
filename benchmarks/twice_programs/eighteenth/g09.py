"""Entity matching as a few-shot scenario: prompts, in-context examples, scores.

Two product catalogues are blocked into candidate pairs, instances are drawn
for the train, validation and test splits, and a similarity baseline answers
the prompts.  The instances are stored, to be sent to other models later.

Modelled on: https://github.com/stanford-crfm/helm/issues/1382
"""
import dataclasses
import json
import pathlib
import random
import time

import numpy as np
import pandas as pd

SEED = 1234
OUT = pathlib.Path("scenario_state")
BRANDS = ["Norda", "Kelvo", "Pixar", "Ultima", "Sonet", "Vireo", "Maxon", "Tesca"]
NOUNS = ["headphones", "keyboard", "monitor", "camera", "router", "printer", "speaker", "webcam"]
ADJECTIVES = ["wireless", "compact", "black", "silver", "pro", "mini", "gaming", "portable"]


def make_catalogues(folder, n=260, seed=5):
    """Two shops that sell nearly the same things under nearly the same names."""
    folder.mkdir(exist_ok=True)
    rng = random.Random(seed)
    left, right, matches = [], [], []
    for i in range(n):
        brand, noun = rng.choice(BRANDS), rng.choice(NOUNS)
        words = rng.sample(ADJECTIVES, 3)
        model = f"{brand[0]}{rng.randint(10, 99)}{rng.choice('ABCX')}"
        price = round(rng.uniform(15, 400), 2)
        left.append((i, f"{brand} {' '.join(words)} {noun} {model}", brand, price))
        if rng.random() < 0.75:
            shown = [w for w in words if rng.random() < 0.7]
            title = " ".join([brand.upper(), model, noun, *shown])
            right.append((len(right), title, brand, round(price * rng.uniform(0.9, 1.1), 2)))
            matches.append((i, len(right) - 1))
    columns = ["id", "title", "brand", "price"]
    pd.DataFrame(left, columns=columns).to_csv(folder / "tableA.csv", index=False)
    pd.DataFrame(right, columns=columns).to_csv(folder / "tableB.csv", index=False)
    pd.DataFrame(matches, columns=["ltable_id", "rtable_id"]).to_csv(folder / "matches.csv", index=False)


@dataclasses.dataclass
class Instance:
    split: str
    input: str
    reference: str
    left: str
    right: str


class EntityMatchingScenario:
    name = "entity_matching"
    sizes = {"train": 40, "valid": 60, "test": 160}

    def __init__(self, folder):
        self.folder = folder

    def read_pairs(self):
        """Candidate pairs of the same brand, with their label."""
        a = pd.read_csv(self.folder / "tableA.csv")
        b = pd.read_csv(self.folder / "tableB.csv")
        gold = pd.read_csv(self.folder / "matches.csv").assign(label=1)
        pairs = a.merge(b, on="brand", suffixes=("_l", "_r"))
        pairs = pairs.merge(
            gold, how="left", left_on=["id_l", "id_r"], right_on=["ltable_id", "rtable_id"]
        )
        pairs["label"] = pairs.label.fillna(0).astype(int)
        return pairs.drop(columns=["ltable_id", "rtable_id"]).sort_values(["id_l", "id_r"])

    def balance(self, pairs):
        """As many non-matches as matches."""
        positive = pairs[pairs.label == 1]
        negative = pairs[pairs.label == 0].sample(n=len(positive))  # cause
        return pd.concat([positive, negative]).sort_index()

    def prompt(self, row):
        return (
            f"Product A is name: {row.title_l}. price: {row.price_l}\n"
            f"Product B is name: {row.title_r}. price: {row.price_r}\n"
            "Are Product A and Product B the same?"
        )

    def get_instances(self):
        pairs = self.balance(self.read_pairs())
        order = np.random.default_rng(SEED).permutation(len(pairs))
        pairs = pairs.iloc[order]
        instances, start = [], 0
        for split, size in self.sizes.items():
            for row in pairs.iloc[start : start + size].itertuples():
                answer = "Yes" if row.label else "No"
                instances.append(Instance(split, self.prompt(row), answer, row.title_l, row.title_r))
            start += size
        return instances


def jaccard(a, b):
    x, y = set(a.lower().split()), set(b.lower().split())
    return len(x & y) / len(x | y)


def choose_threshold(instances):
    """Threshold with the best accuracy on the training examples."""
    scores = [(jaccard(i.left, i.right), i.reference == "Yes") for i in instances]
    best = max(
        (sum((s >= t) == label for s, label in scores), -t) for t in np.linspace(0.05, 0.95, 19).round(2)
    )
    return float(-best[1])


def evaluate(instances, threshold):
    tp = fp = fn = hits = 0
    for instance in instances:
        said = jaccard(instance.left, instance.right) >= threshold
        is_match = instance.reference == "Yes"
        hits += said == is_match
        tp += said and is_match
        fp += said and not is_match
        fn += is_match and not said
    f1 = 2 * tp / max(2 * tp + fp + fn, 1)
    return {"n": len(instances), "exact_match": round(hits / len(instances), 4), "f1": round(f1, 4)}


def main():
    began = time.time()
    random.seed(SEED)
    data = pathlib.Path("products")
    make_catalogues(data)
    scenario = EntityMatchingScenario(data)
    instances = scenario.get_instances()
    OUT.mkdir(exist_ok=True)
    with open(OUT / "instances.jsonl", "w") as handle:
        for instance in instances:
            handle.write(json.dumps(dataclasses.asdict(instance)) + "\n")
    by_split = {s: [i for i in instances if i.split == s] for s in scenario.sizes}
    threshold = choose_threshold(by_split["train"])
    stats = {split: evaluate(part, threshold) for split, part in by_split.items()}
    (OUT / "stats.json").write_text(json.dumps({"threshold": threshold, **stats}, indent=1))
    print(f"{scenario.name}: {len(instances)} instances, threshold {threshold}")
    for split, row in stats.items():
        print(f"  {split:6s} n={row['n']:4d} exact_match={row['exact_match']:.4f} f1={row['f1']:.4f}")
    shots = random.sample(by_split["train"], 3)
    (OUT / "prompt.txt").write_text("\n\n".join(f"{s.input} {s.reference}" for s in shots) + "\n")
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} finished, {time.time() - began:.2f} s")


if __name__ == "__main__":
    main()
