# https://github.com/pelias/placeholder/issues/44 - "xargs -P" runs the extraction in parallel and does not keep the order of the data, as GNU parallel -k did.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
SEED=${SEED:-44}
export PYTHONPATH="$HERE/x20_prep:${PYTHONPATH:-}"

echo "run of $(date) in process $$ on $(uname -n)"
START=$(date +%s)

mkdir -p raw
python "$HERE/x20_prep/generate.py" --seed "$SEED" --out raw --shards 10

: > extract.jsonl
ls raw/*.txt | sort | xargs -P 2 -n 1 python "$HERE/x20_prep/extract.py" >> extract.jsonl  # cause
echo "$(wc -l < extract.jsonl) records extracted"

python "$HERE/x20_prep/train.py" --seed "$SEED" --data extract.jsonl --out model.json
END=$(date +%s)
echo "took $((END - START)) s"
