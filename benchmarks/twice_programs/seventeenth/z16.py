"""Build a daily stock file with primary-security flags, returns and portfolios.

Modelled on https://github.com/bkelly-lab/jkp-data/issues/69

Steps: synthetic vendor extracts -> parquet, security header join, de-duplicated
daily file, return computation, monthly size/momentum portfolios, report.
"""
import logging
import sys
import time
from pathlib import Path

from z16_pkg import portfolios, report, stockfile, vendor

log = logging.getLogger("z16")


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout,
                        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    root = Path("data")
    raw, interim, processed = root / "raw", root / "interim", root / "processed"
    for d in (raw, interim, processed):
        d.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()

    vendor.write_extracts(raw, n_firms=900, n_days=130, seed=69)
    stockfile.build_daily(raw, interim / "daily.parquet")
    stockfile.build_returns(interim / "daily.parquet", interim / "returns.parquet")
    port = portfolios.monthly(interim / "returns.parquet", processed)
    report.write(port, processed / "summary.csv")
    report.show(port)
    log.info("finished in %.1f s, outputs under %s", time.perf_counter() - began,
             processed.resolve())


if __name__ == "__main__":
    main()
