#!/bin/bash
: "Modelled on https://github.com/equinor/semeio/issues/798
Writes a design input, makes the design matrix, runs a proxy simulator and summarises the volumes."
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PYTHON="${PYTHON:-python}"
REPEATS="${REPEATS:-120}"
export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1

mkdir -p input results

cat > input/design_input.json <<JSON
{
  "general_input": {"designtype": "onebyone", "repeats": $REPEATS, "rms_seeds": 1000},
  "variables": {
    "GRV":   {"dist": "normal",     "args": [420, 45]},
    "PORO":  {"dist": "triangular", "args": [0.16, 0.22, 0.29]},
    "SW":    {"dist": "uniform",    "args": [0.18, 0.36]},
    "BO":    {"dist": "normal",     "args": [1.32, 0.03]},
    "KMULT": {"dist": "loguniform", "args": [0.1, 10]},
    "OWC":   {"dist": "uniform",    "args": [2000, 2020]}
  },
  "correlations": [["PORO", "SW", -0.6], ["GRV", "OWC", 0.4]]
}
JSON

echo "--- design"
"$PYTHON" -m p11_fmu.design input/design_input.json results/design.csv
echo "--- simulate"
"$PYTHON" -m p11_fmu.simulate results/design.csv results/volumes.csv
echo "--- summary"
"$PYTHON" -m p11_fmu.summary results/design.csv results/volumes.csv results/summary.json
