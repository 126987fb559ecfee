#!/bin/sh
# Extract path contexts from a source corpus and train a method-name predictor.
#
# Modelled on https://github.com/tech-srl/code2seq/issues/29
#
# Steps: write the corpus, extract examples per source file in parallel, build the
# histograms, train, predict. Outputs: data/, model.npz, metrics.json, predictions.txt.
set -eu

HERE=$(cd "$(dirname "$0")" && pwd)
STEPS="$HERE/z12_steps"
DATASET=demo
SEED=17
NUM_PROCESSES=4
FILES_PER_PROCESS=4
EPOCHS=3
WORD_VOCAB=400
PATH_VOCAB=900

say() {
    echo "$(date +%H:%M:%S) $*"
}

rm -rf corpus data
mkdir -p data/$DATASET

say "writing corpus to $PWD/corpus"
python "$STEPS/make_corpus.py" --out corpus --train-files 48 --test-files 12 --seed $SEED

sources() {
    # $1: split
    find "corpus/$1" -name '*.java' | LC_ALL=C sort
}

say "extracting paths with $NUM_PROCESSES processes"
TRAIN=data/$DATASET/$DATASET.train.raw.txt
TEST=data/$DATASET/$DATASET.test.raw.txt
sources train | xargs -P $NUM_PROCESSES -n $FILES_PER_PROCESS python "$STEPS/extract.py" >> $TRAIN  # cause
sources test | xargs -n 1000 python "$STEPS/extract.py" >> $TEST
say "train: $(wc -l < $TRAIN) examples, test: $(wc -l < $TEST) examples"

say "building histograms"
cut -d ' ' -f 1 < $TRAIN | tr '|' '\n' | LC_ALL=C sort | uniq -c | LC_ALL=C sort -k1,1nr -k2 \
    | awk '{print $2, $1}' > data/$DATASET/$DATASET.histo.tgt
cut -d ' ' -f 2- < $TRAIN | tr ' ' '\n' | cut -d ',' -f 1,3 | tr ',' '\n' | LC_ALL=C sort | uniq -c \
    | LC_ALL=C sort -k1,1nr -k2 | awk '{print $2, $1}' | head -n $WORD_VOCAB > data/$DATASET/$DATASET.histo.ori
cut -d ' ' -f 2- < $TRAIN | tr ' ' '\n' | cut -d ',' -f 2 | LC_ALL=C sort | uniq -c \
    | LC_ALL=C sort -k1,1nr -k2 | awk '{print $2, $1}' | head -n $PATH_VOCAB > data/$DATASET/$DATASET.histo.node

say "training for $EPOCHS epochs"
python "$STEPS/train.py" --data data/$DATASET/$DATASET --epochs $EPOCHS --seed $SEED --save model.npz

say "evaluating"
python "$STEPS/evaluate.py" --data data/$DATASET/$DATASET --load model.npz --out predictions.txt --metrics metrics.json
say "done"
