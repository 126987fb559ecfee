# https://github.com/tesseract-ocr/tesstrain/pull/76 : the list of training lines is shuffled with `sort -R` without a seed, so the split into train and eval lists differs at each make; fixed with a seed for sort -R.
set -e
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=$PWD/data
RATIO_TRAIN=80
MAX_EPOCHS=${MAX_EPOCHS:-3}
SEED=${SEED:-0}

log() {
    printf '[%s] %s\n' "$(date '+%H:%M:%S')" "$*"
}

unicharset() {
    cat "$OUT"/ground-truth/*.gt.txt | fold -w1 | LC_ALL=C sort -u > "$OUT/unicharset"
    log "unicharset has $(wc -l < "$OUT/unicharset") symbols"
}

lists() {
    find "$OUT/ground-truth" -name '*.gt.txt' | sed 's/\.gt\.txt$//; s#.*/##' | LC_ALL=C sort > "$OUT/all-gt.list"
    LC_ALL=C sort -R "$OUT/all-gt.list" > "$OUT/all-lstmf.list"  # cause
    total=$(wc -l < "$OUT/all-lstmf.list")
    train=$((total * RATIO_TRAIN / 100))
    head -n "$train" "$OUT/all-lstmf.list" > "$OUT/list.train"
    tail -n "$((total - train))" "$OUT/all-lstmf.list" > "$OUT/list.eval"
    log "$train lines for training, $((total - train)) for evaluation"
}

mkdir -p "$OUT/ground-truth"
log "generating ground truth, shell pid $$"
python "$HERE/e21_ocr/generate.py" "$OUT/ground-truth" 160
unicharset
lists
python "$HERE/e21_ocr/train.py" --data "$OUT" --epochs "$MAX_EPOCHS" --seed "$SEED" --output result.json
log "finished"
