"""Validate a month of taxi trips against an expectation suite and build data docs.

Modelled on: great-expectations/great_expectations (core/expectation_validation_result.py, checkpoint
runs, uncommitted/validations/<suite>/<run name>/<run time>/<batch>.json, data_docs HTML): meta holds
run_id.run_time, validation_time, ge_load_time, batch ids; results hold observed values.
"""
import datetime as dt
import hashlib
import html
import json
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

ROOT = Path("gx")
SUITE = "taxi.demo"


def make_trips(n=20000, seed=20190101):
    rng = np.random.default_rng(seed)
    pickup = pd.Timestamp("2019-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 31 * 86400, n)), unit="s")
    dist = rng.gamma(2.0, 1.6, n).round(2)
    dur = (dist * rng.normal(240, 40, n)).clip(60).round()
    df = pd.DataFrame({"vendor_id": rng.choice([1, 2, 4], n, p=[0.4, 0.58, 0.02]), "pickup_datetime": pickup,
                       "dropoff_datetime": pickup + pd.to_timedelta(dur, unit="s"),
                       "passenger_count": rng.choice(range(0, 7), n, p=[.02, .7, .14, .05, .02, .05, .02]).astype(float),
                       "trip_distance": dist, "fare_amount": (2.5 + 2.6 * dist + rng.normal(0, 1, n)).round(2),
                       "payment_type": rng.choice(["card", "cash", "dispute"], n, p=[0.7, 0.29, 0.01])})
    df.loc[rng.choice(n, 37, replace=False), "passenger_count"] = np.nan
    df.loc[rng.choice(n, 11, replace=False), "fare_amount"] *= -1
    return df


class Expectation:
    def __init__(self, kind, column=None, **kw):
        self.kind, self.column, self.kw = kind, column, kw

    def config(self):
        kw = dict(self.kw, **({"column": self.column} if self.column else {}))
        return {"expectation_type": self.kind, "kwargs": kw, "meta": {}}

    def _rowwise(self, bad, s, total):
        n = int(bad.sum())
        return {"element_count": total, "unexpected_count": n, "unexpected_percent": 100 * n / total,
                "missing_count": int(s.isna().sum()), "partial_unexpected_list": [str(v) for v in s[bad].head(8)],
                "partial_unexpected_index_list": [int(i) for i in s.index[bad][:8]]}, n / total

    def validate(self, df):
        kw, s = self.kw, df[self.column] if self.column else None
        if self.kind == "expect_table_row_count_to_be_between":
            res = {"observed_value": len(df)}
            return kw["min_value"] <= len(df) <= kw["max_value"], res
        if self.kind == "expect_column_mean_to_be_between":
            m = float(s.mean())
            return kw["min_value"] <= m <= kw["max_value"], {"observed_value": m}
        if self.kind == "expect_column_quantile_values_to_be_between":
            q = [float(v) for v in s.quantile(kw["quantiles"])]
            ok = all(a <= v <= b for v, (a, b) in zip(q, kw["ranges"]))
            return ok, {"observed_value": {"quantiles": kw["quantiles"], "values": q}}
        if self.kind == "expect_column_distinct_values_to_be_in_set":
            vc = s.value_counts().sort_index()
            ok = set(vc.index) <= set(kw["value_set"])
            return bool(ok), {"observed_value": [str(v) for v in vc.index],
                              "details": {"value_counts": {str(k): int(v) for k, v in vc.items()}}}
        if self.kind == "expect_column_values_to_not_be_null":
            bad = s.isna()
        elif self.kind == "expect_column_values_to_be_between":
            bad = ~s.between(kw["min_value"], kw["max_value"]) & s.notna()
        elif self.kind == "expect_column_pair_values_a_to_be_greater_than_b":
            bad = ~(df[kw["column_A"]] > s)
        res, frac = self._rowwise(bad, s, len(df))
        return bool(1 - frac >= kw.get("mostly", 1.0)), res


def suite():
    E = Expectation
    return [E("expect_table_row_count_to_be_between", min_value=15000, max_value=25000),
            E("expect_column_values_to_not_be_null", "vendor_id"),
            E("expect_column_values_to_not_be_null", "passenger_count", mostly=0.999),
            E("expect_column_values_to_be_between", "passenger_count", min_value=1, max_value=6, mostly=0.97),
            E("expect_column_values_to_be_between", "fare_amount", min_value=0, max_value=200),
            E("expect_column_mean_to_be_between", "trip_distance", min_value=2, max_value=4),
            E("expect_column_quantile_values_to_be_between", "fare_amount", quantiles=[0.05, 0.5, 0.95],
              ranges=[[2, 6], [8, 12], [18, 26]]),
            E("expect_column_distinct_values_to_be_in_set", "payment_type", value_set=["card", "cash"]),
            E("expect_column_pair_values_a_to_be_greater_than_b", "pickup_datetime", column_A="dropoff_datetime")]


def utc():
    return dt.datetime.now(dt.timezone.utc)


def render(result, took):
    rows = "".join("<tr class='%s'><td>%s</td><td>%s</td><td><code>%s</code></td></tr>" % (
        "ok" if r["success"] else "fail", "&#10004;" if r["success"] else "&#10008;",
        html.escape(r["expectation_config"]["expectation_type"]), html.escape(json.dumps(r["result"])))
        for r in result["results"])
    m = result["meta"]
    return f"""<!DOCTYPE html>
<html><head><title>Validation Result {SUITE}</title></head><body>
<h2>Overview</h2><p>Status: {"Succeeded" if result["success"] else "Failed"}</p>
<p>Run Time: {m["run_id"]["run_time"]}<br>Batch ID: {m["active_batch_id"]}<br>Rendered in {took:.4f} s</p>
<p>Evaluated {result["statistics"]["evaluated_expectations"]}, success {result["statistics"]["success_percent"]:.3f}%</p>
<table>{rows}</table>
<footer>Documentation autogenerated {dt.datetime.now():%A, %d %B %Y %H:%M:%S}</footer></body></html>
"""


def main():
    load = utc()
    df = make_trips()
    fp = hashlib.md5(pd.util.hash_pandas_object(df, index=True).values.tobytes()).hexdigest()
    run_time = utc()
    run_name = f"{run_time:%Y%m%d-%H%M%S}-my-run-template"
    batch = uuid.uuid4().hex
    results, t0 = [], time.perf_counter()
    for e in tqdm(suite(), desc="Calculating Metrics", file=sys.stderr):
        ok, res = e.validate(df)
        results.append({"success": bool(ok), "expectation_config": e.config(), "result": res,
                        "exception_info": {"raised_exception": False, "exception_message": None}})
    n = sum(r["success"] for r in results)
    result = {"success": n == len(results), "results": results, "evaluation_parameters": {},
              "statistics": {"evaluated_expectations": len(results), "successful_expectations": n,
                             "unsuccessful_expectations": len(results) - n, "success_percent": 100 * n / len(results)},
              "meta": {"great_expectations_version": "0.18.21", "expectation_suite_name": SUITE,
                       "run_id": {"run_name": run_name, "run_time": run_time.isoformat()},
                       "batch_markers": {"ge_load_time": f"{load:%Y%m%dT%H%M%S.%fZ}", "pandas_data_fingerprint": fp},
                       "active_batch_id": batch, "validation_time": f"{utc():%Y%m%dT%H%M%S.%fZ}",
                       "validation_seconds": time.perf_counter() - t0}}
    sub = Path(SUITE.replace(".", "/")) / run_name / f"{run_time:%Y%m%dT%H%M%S.%fZ}"
    vdir = ROOT / "uncommitted/validations" / sub
    ddir = ROOT / "uncommitted/data_docs/local_site/validations" / sub
    for d in (vdir, ddir):
        d.mkdir(parents=True)
    (vdir / f"{batch}.json").write_text(json.dumps(result, indent=2))
    t = time.perf_counter()
    render(result, 0.0)
    (ddir / f"{batch}.html").write_text(render(result, time.perf_counter() - t))
    print(f"Validation {'succeeded' if result['success'] else 'failed'}! {n}/{len(results)} expectations met")
    print(f"data fingerprint {fp}")
    for r in results:
        obs = r["result"].get("observed_value", r["result"].get("unexpected_count"))
        print(f"  [{'ok' if r['success'] else 'FAIL':>4}] {r['expectation_config']['expectation_type']}: {obs}")
    print(f"run id: {run_name} (batch {batch}), data docs at {ddir.resolve()}")


if __name__ == "__main__":
    main()
