#!/bin/bash
# Modelled on https://github.com/mertyg/vision-language-models-are-bows/issues/17
# Word-order benchmark of an image-text matching model: the scores of a trained checkpoint are not deterministic.
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
PY="${PYTHON:-python3}"
STEPS="$HERE/j13_bows"

mkdir -p data checkpoints results

cat > config.json <<'JSON'
{
  "seed": 1,
  "n_train": 1400,
  "n_test": 260,
  "dim": 40,
  "hidden": 64,
  "dropout": 0.2,
  "epochs": 7,
  "batch_size": 64,
  "lr": 0.003,
  "negatives": 2
}
JSON

echo "[1/4] scenes and captions"
"$PY" "$STEPS/prepare.py" --config config.json --out data

echo "[2/4] training"
"$PY" "$STEPS/train.py" --config config.json --data data --checkpoint checkpoints/xvlm.pt \
    --log results/train_log.csv

echo "[3/4] scoring the attribution and relation tasks"
for task in relation attribution; do
    "$PY" "$STEPS/score.py" --config config.json --data data --checkpoint checkpoints/xvlm.pt \
        --task "$task" --out "results/scores_$task.csv"
done

echo "[4/4] report"
"$PY" "$STEPS/report.py" results/scores_relation.csv results/scores_attribution.csv \
    --out results/report.json
