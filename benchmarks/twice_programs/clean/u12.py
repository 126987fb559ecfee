"""Shuttle price regression pipeline with a data catalog and versioned outputs.

Modelled on: kedro-org/kedro (spaceflights starter, kedro/runner, kedro/io/core.py versions
YYYY-MM-DDThh.mm.ss.sssZ): data/0N_layer/..., the version's time stamp as a folder,
"INFO Completed 3 out of 6 tasks", a run summary with node durations; parquet, pickle, JSON, CSV.
"""
import json
import logging
import logging.handlers
import pickle
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.metrics import max_error, mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split

PARAMS = {"test_size": 0.2, "random_state": 3,
          "features": ["engines", "passenger_capacity", "crew", "d_check_complete", "moon_clearance_complete",
                       "iata_approved", "company_rating", "review_scores_rating"]}


def generate_version():
    now = datetime.now(timezone.utc)
    return now.strftime("%Y-%m-%dT%H.%M.%S.") + f"{now.microsecond // 1000:03d}Z"


class Dataset:
    def __init__(self, path, kind, versioned=False):
        self.path, self.kind, self.versioned = Path("data") / path, kind, versioned

    def target(self, version):
        return self.path / version / self.path.name if self.versioned else self.path

    def save(self, obj, version):
        p = self.target(version)
        p.parent.mkdir(parents=True, exist_ok=True)
        if self.kind == "parquet":
            obj.to_parquet(p)
        elif self.kind == "csv":
            obj.to_csv(p, index=False)
        elif self.kind == "pickle":
            p.write_bytes(pickle.dumps(obj))
        elif self.kind == "json":
            p.write_text(json.dumps(obj, indent=2))

    def load(self, version):
        p = self.target(version)
        if self.kind == "parquet":
            return pd.read_parquet(p)
        if self.kind == "csv":
            return pd.read_csv(p)
        return pickle.loads(p.read_bytes()) if self.kind == "pickle" else json.loads(p.read_text())


CATALOG = {
    "companies": Dataset("01_raw/companies.csv", "csv"),
    "shuttles": Dataset("01_raw/shuttles.csv", "csv"),
    "reviews": Dataset("01_raw/reviews.csv", "csv"),
    "preprocessed_companies": Dataset("02_intermediate/preprocessed_companies.parquet", "parquet"),
    "preprocessed_shuttles": Dataset("02_intermediate/preprocessed_shuttles.parquet", "parquet"),
    "model_input_table": Dataset("03_primary/model_input_table.parquet", "parquet"),
    "regressor": Dataset("06_models/regressor.pickle", "pickle", versioned=True),
    "metrics": Dataset("08_reporting/metrics.json", "json", versioned=True),
    "price_by_type": Dataset("08_reporting/price_by_type.csv", "csv", versioned=True),
}


# ------------------------------------------------------------------ nodes
def preprocess_companies(df):
    df = df.copy()
    df["iata_approved"] = df["iata_approved"] == "t"
    df["company_rating"] = df["company_rating"].str.replace("%", "").astype(float) / 100
    return df


def preprocess_shuttles(df):
    df = df.copy()
    for c in ("d_check_complete", "moon_clearance_complete"):
        df[c] = df[c] == "t"
    df["price"] = df["price"].str.replace("$", "").str.replace(",", "").astype(float)
    return df


def create_model_input_table(shuttles, companies, reviews):
    t = shuttles.merge(reviews, left_on="id", right_on="shuttle_id")
    t = t.merge(companies.rename(columns={"id": "company"}), left_on="company_id", right_on="company")
    return t.drop(columns=["company"]).dropna().sort_values("shuttle_id").reset_index(drop=True)


def split_data(data, p):
    return train_test_split(data[p["features"]], data["price"], test_size=p["test_size"],
                            random_state=p["random_state"])


def train_model(X_train, y_train):
    return LinearRegression().fit(X_train.astype(float), y_train)


def evaluate_model(reg, X_test, y_test):
    pred = reg.predict(X_test.astype(float))
    return {"r2_score": r2_score(y_test, pred), "mae": mean_absolute_error(y_test, pred),
            "max_error": max_error(y_test, pred)}


def compare_types(table):
    g = table.groupby("shuttle_type")["price"]
    return g.agg(["count", "mean", "std", "max"]).reset_index()


NODES = [
    ("preprocess_companies_node", preprocess_companies, ["companies"], ["preprocessed_companies"]),
    ("preprocess_shuttles_node", preprocess_shuttles, ["shuttles"], ["preprocessed_shuttles"]),
    ("create_model_input_table_node", create_model_input_table,
     ["preprocessed_shuttles", "preprocessed_companies", "reviews"], ["model_input_table"]),
    ("split_data_node", split_data, ["model_input_table", "params:model_options"],
     ["X_train", "X_test", "y_train", "y_test"]),
    ("train_model_node", train_model, ["X_train", "y_train"], ["regressor"]),
    ("evaluate_model_node", evaluate_model, ["regressor", "X_test", "y_test"], ["metrics"]),
    ("compare_types_node", compare_types, ["model_input_table"], ["price_by_type"]),
]


class SequentialRunner:
    def __init__(self, version):
        self.version, self.memory = version, {"params:model_options": PARAMS}
        self.log = logging.getLogger("kedro.runner.sequential_runner")
        self.io = logging.getLogger("kedro.io.data_catalog")

    def load(self, name):
        if name in self.memory:
            self.io.info("Loading data from '%s' (MemoryDataset)...", name)
            return self.memory[name]
        self.io.info("Loading data from '%s' (%s)...", name, CATALOG[name].kind)
        return CATALOG[name].load(self.version)

    def save(self, name, obj):
        if name in CATALOG:
            self.io.info("Saving data to '%s' (%s)...", name, CATALOG[name].kind)
            CATALOG[name].save(obj, self.version)
        else:
            self.memory[name] = obj

    def run(self):
        stats = []
        for i, (name, func, ins, outs) in enumerate(NODES, 1):
            t = time.perf_counter()
            logging.getLogger("kedro.pipeline.node").info("Running node: %s: %s(%s) -> %s", name, func.__name__, ins, outs)
            value = func(*map(self.load, ins))
            for o, v in zip(outs, value if len(outs) > 1 else [value]):
                self.save(o, v)
            stats.append({"node": name, "seconds": time.perf_counter() - t})
            self.log.info("Completed node: %s", name)
            self.log.info("Completed %d out of %d tasks", i, len(NODES))
        self.log.info("Pipeline execution completed successfully in %.1f sec.", sum(s["seconds"] for s in stats))
        return stats


def write_raw(seed=11, n_comp=300, n=4000):
    rng = np.random.default_rng(seed)
    comp = pd.DataFrame({"id": np.arange(n_comp) + 1000, "company_rating": [f"{v}%" for v in rng.integers(40, 101, n_comp)],
                         "company_location": rng.choice(["Niue", "Anguilla", "Chile", "Isle of Man"], n_comp),
                         "iata_approved": rng.choice(["t", "f"], n_comp)})
    comp.loc[rng.choice(n_comp, 9, replace=False), "company_rating"] = None
    eng, cap = rng.integers(1, 6, n), rng.integers(1, 12, n)
    rate = rng.normal(92, 5, n).clip(40, 100).round(1)
    price = 900 + 310 * eng + 95 * cap + 6 * rate + rng.normal(0, 260, n)
    sh = pd.DataFrame({"id": np.arange(n), "shuttle_type": rng.choice(["Type V5", "Type F5", "Type V2"], n),
                       "engines": eng, "passenger_capacity": cap, "crew": rng.integers(1, 6, n),
                       "d_check_complete": rng.choice(["t", "f"], n), "moon_clearance_complete": rng.choice(["t", "f"], n),
                       "price": [f"${p:,.1f}" for p in price], "company_id": rng.choice(comp["id"], n)})
    rev = pd.DataFrame({"shuttle_id": rng.permutation(n), "review_scores_rating": 0.0, "number_of_reviews": rng.poisson(9, n)})
    rev["review_scores_rating"] = rate[rev["shuttle_id"]]
    for name, df in [("companies", comp), ("shuttles", sh), ("reviews", rev)]:
        CATALOG[name].save(df, None)


def main():
    Path("logs").mkdir()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s", handlers=[
        logging.StreamHandler(), logging.handlers.RotatingFileHandler("logs/info.log", maxBytes=10 ** 6, backupCount=2)])
    write_raw()
    session_id = generate_version()
    logging.getLogger("kedro.framework.session.session").info("Kedro project spaceflights, session %s", session_id)
    stats = SequentialRunner(session_id).run()
    Path("logs/session_store.json").write_text(json.dumps({"session_id": session_id, "project_path": str(Path.cwd()),
                                                           "cli": {"command_name": "run"}, "node_stats": stats}, indent=1))
    for k, v in CATALOG["metrics"].load(session_id).items():
        print(f"{k}: {v:.12g}")
    reg = CATALOG["regressor"].load(session_id)
    for f, c in zip(PARAMS["features"], reg.coef_):
        print(f"  {f:28s} {c: .10f}")


if __name__ == "__main__":
    main()
