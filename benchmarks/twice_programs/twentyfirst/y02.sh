#!/bin/bash
# Affinity model: featurise the complexes, then fit and score the hold-out set.
# Modelled on: https://github.com/deepchem/deepchem/issues/5092
set -e
here="$(cd "$(dirname "$0")" && pwd)"
export PYTHONPATH="$here:$PYTHONPATH"
python -m y02_pkg.featurize --out complexes.npz
python -m y02_pkg.fit --data complexes.npz --model model.pt --epochs 12 --out predictions.csv
cat metrics.json
