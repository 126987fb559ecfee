#!/bin/bash
# Modelled on https://github.com/zark-stark12/crm-rfm-modeling/issues/2
# Customer scoring job: load the orders, build the RFM table, segment the customers and write the campaign list.
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
PY="${PYTHON:-python3}"
CODE="$HERE/j25_rfm"

mkdir -p data out

"$PY" "$CODE/load_orders.py" --out data/orders.csv --customers 400 --seed 5
"$PY" "$CODE/build_rfm.py" --orders data/orders.csv --out data/rfm.csv
"$PY" "$CODE/score.py" --rfm data/rfm.csv --outdir out --budget 60

echo "campaign list: $(($(wc -l < out/campaign.csv) - 1)) customers"
