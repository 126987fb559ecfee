#!/usr/bin/env bash
# Prepare a chat corpus: generate the raw dump, clean it, split it into a
# training and a test set, train a unigram/bigram reply classifier, evaluate.
#
# Modelled on: https://github.com/lm-sys/FastChat/pull/1522
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
PYTHON="${PYTHON:-python3}"
DATA=data
export PYTHONPATH="$HERE/k04_pkg${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1

mkdir -p "$DATA" results

echo "[$(date '+%Y-%m-%d %H:%M:%S')] dump"
"$PYTHON" -m data.make_dump --out-file "$DATA/sharegpt.json" --count 3000

echo "[$(date '+%Y-%m-%d %H:%M:%S')] clean"
"$PYTHON" -m data.clean --in-file "$DATA/sharegpt.json" --out-file "$DATA/sharegpt_clean.json"

echo "[$(date '+%Y-%m-%d %H:%M:%S')] split"
"$PYTHON" -m data.split_train_test --in-file "$DATA/sharegpt_clean.json" --ratio 0.9

echo "[$(date '+%Y-%m-%d %H:%M:%S')] train"
"$PYTHON" -m train.train_router \
    --train-file "$DATA/sharegpt_clean_train.json" \
    --test-file "$DATA/sharegpt_clean_test.json" \
    --report results/report.json --seed 0

echo "[$(date '+%Y-%m-%d %H:%M:%S')] done"
