#!/bin/bash
# Modelled on https://github.com/mahmoodlab/CLAM/pull/314
# Attention-based multiple-instance learning on synthetic slides: extract bags, train, then score slides and patches.
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
PY="${PYTHON:-python3}"
CODE="$HERE/j14_clam"

mkdir -p results logs

cat > config.json <<'JSON'
{
  "seed": 7,
  "n_slides": 60,
  "feat_dim": 24,
  "hidden": 32,
  "dropout": 0.25,
  "epochs": 12,
  "lr": 0.003,
  "weight_decay": 0.0001,
  "val_fraction": 0.25,
  "top_k": 5
}
JSON

echo "== step 1: bags"
"$PY" "$CODE/make_bags.py" --config config.json --out bags.npz | tee logs/bags.log

echo "== step 2: training"
"$PY" "$CODE/train.py" --config config.json --bags bags.npz --ckpt results/model.pt | tee logs/train.log

echo "== step 3: heatmaps"
"$PY" "$CODE/heatmap.py" --config config.json --bags bags.npz --ckpt results/model.pt --out results | tee logs/heatmap.log

echo "== done"
