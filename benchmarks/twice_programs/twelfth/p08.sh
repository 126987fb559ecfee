#!/bin/bash
: "Modelled on https://github.com/synthetichealth/synthea/issues/657
Simulates patients with a given seed, builds a cohort table and fits a readmission model."
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PYTHON="${PYTHON:-python}"
SEED="${SEED:-42}"
PATIENTS="${PATIENTS:-1500}"
OUT=output

step() { echo "== $1"; }

mkdir -p "$OUT"
export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1

step "patients (seed $SEED)"
"$PYTHON" -m p08_synth.patients --seed "$SEED" --patients "$PATIENTS" --out "$OUT/fhir"

step "cohort"
"$PYTHON" -m p08_synth.cohort --bundle "$OUT/fhir/bundle.json" --test-percent 30 --out "$OUT/cohort.csv"

step "readmission model"
"$PYTHON" -m p08_synth.readmission --cohort "$OUT/cohort.csv" --out "$OUT/metrics.json"

ls "$OUT" > "$OUT/manifest.txt"
step "done"
