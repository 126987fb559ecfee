#!/bin/bash
# Nightly export of the air quality network: extract -> clean -> publish (see h02_pkg/).
#
# Modelled on: https://github.com/pandas-dev/pandas/issues/28103
set -eu
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PY="${PYTHON:-python3}"

mkdir -p work export
echo "[$(date +%H:%M:%S)] extract"
"$PY" "$here/h02_pkg/extract.py" --stations 10 --days 30 --seed 2024 --out work/raw.csv
echo "[$(date +%H:%M:%S)] clean"
"$PY" "$here/h02_pkg/clean.py" --raw work/raw.csv --out work/hourly.parquet
echo "[$(date +%H:%M:%S)] publish"
"$PY" "$here/h02_pkg/publish.py" --hourly work/hourly.parquet --out export
echo "[$(date +%H:%M:%S)] done"
