#!/bin/bash
# Demo shop: makes a data set, derives customer features from it and fits the
# lifetime-value model that the dashboard shows. All steps use the same seed.
#
# Results: orders.sqlite, features.csv, ltv_model.json, ltv_predictions.npy
#
# Modelled on: https://github.com/faker-js/faker/issues/1870
#
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
python="${PYTHON:-python3}"
seed=200

echo "== making the shop"
"$python" "$here/v13_pkg/make_shop.py" --seed "$seed" --customers 700 --db orders.sqlite
echo "== features"
"$python" "$here/v13_pkg/build_features.py" --db orders.sqlite --out features.csv
echo "== model"
"$python" "$here/v13_pkg/fit_ltv.py" --features features.csv --seed "$seed"
echo "== done $(date +%H:%M:%S)"
