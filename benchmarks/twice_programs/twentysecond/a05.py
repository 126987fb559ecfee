"""flowline: a small data pipeline of named nodes, run one after another.

Nodes declare which data sets they read and write; the runner works out an order
that satisfies the dependencies and executes the nodes with a shared data catalog.
The pipeline here prepares customer data, fits two models and reports on them.
Results are in ``metrics.json`` and ``predictions.csv``.

Modelled on: https://github.com/kedro-org/kedro/issues/1350
"""
import json
import logging
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, roc_auc_score

log = logging.getLogger("flowline")


class Node:
    """A function together with the names of its inputs and outputs."""

    def __init__(self, func, inputs, outputs):
        self.func = func
        self.inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        self.outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        self.name = func.__name__

    def __repr__(self):
        return f"Node({self.name})"

    def run(self, catalog):
        result = self.func(*[catalog[name] for name in self.inputs])
        if len(self.outputs) == 1:
            result = (result,)
        return dict(zip(self.outputs, result))


class Pipeline:
    def __init__(self, nodes):
        self.nodes = set(nodes)

    def sorted_nodes(self):
        produced = {out for node in self.nodes for out in node.outputs}
        waiting = set(self.nodes)
        available = {i for node in self.nodes for i in node.inputs} - produced
        order = []
        while waiting:
            ready = [n for n in waiting if all(i in available for i in n.inputs)]  # cause
            if not ready:
                raise ValueError("circular dependency in the pipeline")
            order.extend(ready)
            waiting.difference_update(ready)
            for node in ready:
                available.update(node.outputs)
        return order


class SequentialRunner:
    def run(self, pipeline, catalog):
        for step, node in enumerate(pipeline.sorted_nodes(), 1):
            started = time.perf_counter()
            catalog.update(node.run(catalog))
            log.info("%2d %-20s %.3fs", step, node.name, time.perf_counter() - started)
        return catalog


# nodes -----------------------------------------------------------------
def make_customers(params):
    n = params["customers"]
    return pd.DataFrame({
        "customer": np.arange(n),
        "age": np.random.randint(18, 80, n),
        "income": np.random.lognormal(10, 0.5, n).round(2),
        "region": np.random.choice(["n", "s", "e", "w"], n),
    })


def make_visits(params):
    n = params["customers"]
    return pd.DataFrame({
        "customer": np.arange(n),
        "visits": np.random.poisson(4, n),
        "minutes": np.random.gamma(2.0, 15.0, n).round(1),
    })


def make_campaign(params):
    n = params["customers"]
    return pd.DataFrame({
        "customer": np.arange(n),
        "mailed": np.random.binomial(1, 0.4, n),
        "clicked": np.random.binomial(1, 0.15, n),
    })


def make_support(params):
    n = params["customers"]
    return pd.DataFrame({
        "customer": np.arange(n),
        "tickets": np.random.poisson(0.6, n),
        "rating": np.random.randint(1, 6, n),
    })


def make_returns(params):
    n = params["customers"]
    return pd.DataFrame({"customer": np.arange(n), "returned": np.random.poisson(0.3, n)})


def join_tables(customers, visits, campaign, support, returns):
    table = customers
    for other in (visits, campaign, support, returns):
        table = table.merge(other, on="customer")
    return table


def add_target(table):
    score = (0.02 * (table["age"] - 45) + 0.3 * (table["visits"] - 4)
             + 0.8 * table["mailed"] + 1.2 * table["clicked"]
             - 0.4 * table["tickets"] - 0.5 * table["returned"]
             + np.random.normal(0, 0.8, len(table)))
    return table.assign(bought=(score > 0.6).astype(int))


def make_features(table):
    dummies = pd.get_dummies(table["region"], prefix="region").astype(float)
    numeric = table[["age", "income", "visits", "minutes", "mailed", "clicked",
                     "tickets", "rating", "returned"]]
    numeric = (numeric - numeric.mean()) / numeric.std()
    return pd.concat([numeric, dummies], axis=1)


def split_rows(table, params):
    order = np.random.permutation(len(table))
    cut = int(len(table) * params["train_fraction"])
    return order[:cut], order[cut:]


def fit_forest(features, table, train_rows):
    model = RandomForestClassifier(40, max_depth=6)
    return model.fit(features.iloc[train_rows], table["bought"].iloc[train_rows])


def fit_linear(features, table, train_rows):
    model = SGDClassifier(loss="log_loss", max_iter=30, tol=None)
    return model.fit(features.iloc[train_rows], table["bought"].iloc[train_rows])


def report(forest, linear, features, table, test_rows):
    truth = table["bought"].iloc[test_rows]
    out = pd.DataFrame({"customer": table["customer"].iloc[test_rows], "truth": truth})
    metrics = {}
    for name, model in (("forest", forest), ("linear", linear)):
        p = model.predict_proba(features.iloc[test_rows])[:, 1]
        out[name] = p.round(6)
        metrics[name] = {"auc": round(float(roc_auc_score(truth, p)), 5),
                         "accuracy": round(float(accuracy_score(truth, p > 0.5)), 5)}
    return metrics, out.sort_values("customer")


def create_pipeline():
    return Pipeline([
        Node(make_customers, "params", "customers"),
        Node(make_visits, "params", "visits"),
        Node(make_campaign, "params", "campaign"),
        Node(make_support, "params", "support"),
        Node(make_returns, "params", "returns"),
        Node(join_tables, ["customers", "visits", "campaign", "support", "returns"], "joined"),
        Node(add_target, "joined", "table"),
        Node(make_features, "table", "features"),
        Node(split_rows, ["table", "params"], ["train_rows", "test_rows"]),
        Node(fit_forest, ["features", "table", "train_rows"], "forest"),
        Node(fit_linear, ["features", "table", "train_rows"], "linear"),
        Node(report, ["forest", "linear", "features", "table", "test_rows"],
             ["metrics", "predictions"]),
    ])


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    np.random.seed(2022)
    catalog = {"params": {"customers": 2500, "train_fraction": 0.7}}
    SequentialRunner().run(create_pipeline(), catalog)
    with open("metrics.json", "w") as fh:
        json.dump(catalog["metrics"], fh, indent=2)
    catalog["predictions"].to_csv("predictions.csv", index=False)
    print("bought: %.4f" % catalog["table"]["bought"].mean())
    for name, row in catalog["metrics"].items():
        print(f"{name}: auc={row['auc']:.5f} accuracy={row['accuracy']:.5f}")


if __name__ == "__main__":
    main()
