#!/usr/bin/env bash
# Zero-shot risk estimates from simulated patient timelines.
#   1. tokenise the synthetic admissions   2. train the timeline model
#   3. simulate futures for the test set   4. score the tasks
# Each step reads the files of the one before it; everything lands in the
# current folder (data/, model.pt, futures.npz, scores.json, risks.csv).
# Modelled on: https://github.com/ipolharvard/ethos-ares/issues/20
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
PYTHON="${PYTHON:-python3}"
SEED=11

echo "[$(date +%H:%M:%S)] tokenise"
"$PYTHON" "$HERE/w10_pkg/tokenise.py" --out data --patients 700 --seed "$SEED"
echo "[$(date +%H:%M:%S)] train"
"$PYTHON" "$HERE/w10_pkg/train.py" --data data --model model.pt --seed "$SEED"
echo "[$(date +%H:%M:%S)] simulate"
"$PYTHON" "$HERE/w10_pkg/simulate.py" --data data --model model.pt --out futures.npz --seed "$SEED"
echo "[$(date +%H:%M:%S)] score"
"$PYTHON" "$HERE/w10_pkg/score.py" --data data --futures futures.npz
echo "[$(date +%H:%M:%S)] done"
