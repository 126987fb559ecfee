#!/bin/bash
# Fee market experiment: draw the demand scenario, simulate users under two
# fee rules, and compare. Each step reads the files of the step before.
#
# Modelled on: https://github.com/ethereum/abm1559/issues/2
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"

seed=1559
blocks=220
mkdir -p scenario results

echo "[$(date +%H:%M:%S)] scenario"
python -m x13_pkg.scenario --seed "$seed" --blocks "$blocks" --out scenario/demand.csv

for rule in basefee auction; do
    echo "[$(date +%H:%M:%S)] simulate $rule"
    python -m x13_pkg.simulate --rule "$rule" --seed "$seed" \
        --demand scenario/demand.csv --out "results/$rule.csv"
done

echo "[$(date +%H:%M:%S)] compare"
python -m x13_pkg.compare results/basefee.csv results/auction.csv \
    --out results/comparison.json
