"""Buyer / non-buyer data set for the campaign model.

Loads customers and receipts into the database, flags the buyers, balances the
two groups by undersampling and trains the response model on the result.
Writes balanced.parquet, quality.json and response_model.json.
Modelled on: https://github.com/The-Japan-DataScientist-Society/100knocks-preprocess/issues/28
"""
import json
import logging
import time

import duckdb

from v06_pkg.checks import quality_report
from v06_pkg.model import train_response_model
from v06_pkg.sampling import balance, flag_buyers
from v06_pkg.tables import create_tables

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("campaign")

SEED = 91


def main():
    started = time.time()
    con = duckdb.connect(config={"threads": 1})
    counts = create_tables(con, n_customers=60_000, seed=SEED)
    log.info("loaded %s", counts)
    flag_buyers(con)
    frame = balance(con)
    log.info("balanced data set: %d rows", len(frame))
    frame.to_parquet("balanced.parquet", index=False)

    quality = quality_report(con, frame)
    with open("quality.json", "w") as fh:
        json.dump(quality, fh, indent=2)
    model = train_response_model(frame, seed=SEED)
    with open("response_model.json", "w") as fh:
        json.dump(model, fh, indent=2)
    print("rows per group:", quality["rows_per_group"])
    print(f"mean age buyers {quality['mean_age']['1']:.4f}, non-buyers {quality['mean_age']['0']:.4f}")
    print(f"cross-validated AUC {model['auc_mean']:.8f} +- {model['auc_std']:.8f}")
    log.info("finished in %.1f s", time.time() - started)


if __name__ == "__main__":
    main()
