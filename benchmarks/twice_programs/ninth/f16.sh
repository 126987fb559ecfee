#!/bin/sh
# Churn of a subscription service: load, features in SQL, a small network.
# Modelled on https://github.com/cagov/caldata-mdsa-caltrans-pems/issues/560
# The content of some tables of a warehouse depends on more than the data.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
db=${DB:-service.sqlite}
seed=${SEED:-19}
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"

step() {
    name=$1
    shift
    t0=$(date +%s)
    echo "[$(date +%H:%M:%S)] $name" >&2
    "$@"
    echo "[$(date +%H:%M:%S)] $name took $(( $(date +%s) - t0 ))s" >&2
}

[ ! -e "$db" ] || { echo "$db exists" >&2; exit 1; }
step load "$python" -m f16_churn.load --db "$db" --subscribers 3000 --seed "$seed"
step features "$python" -m f16_churn.sql --db "$db" "$here/f16_churn/clean.sql" "$here/f16_churn/features.sql"
step train "$python" -m f16_churn.train --db "$db" --epochs 30 --seed "$seed" --out churn.json
echo "result in churn.json" >&2
