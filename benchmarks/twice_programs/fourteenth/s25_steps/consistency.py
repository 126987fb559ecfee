import sys

import pandas as pd
from scipy.stats import spearmanr

COLUMNS = ["chrom", "start", "end", "logp", "n"]
full, one, two = (pd.read_csv(p, sep="\t", names=COLUMNS) for p in sys.argv[1:4])
both = one.merge(two, on=["chrom", "start"], suffixes=("_1", "_2"))
rho = spearmanr(both.logp_1, both.logp_2).statistic
kept = full.merge(both[["chrom", "start"]], on=["chrom", "start"])
for name, value in [("full", len(full)), ("pr1", len(one)), ("pr2", len(two)),
                    ("shared", len(both)), ("kept", len(kept)),
                    ("self_consistency", round(max(len(one), len(two)) / min(len(one), len(two)), 6)),
                    ("spearman", round(float(rho), 6))]:
    print(name, value, sep="\t")
