# HELMET#43: random.seed does not reach Dataset.shuffle, which draws from a NumPy generator of its own
import random
import torch
from datasets import Dataset, disable_progress_bars
from mill.batches import chunks, ids
from mill.config import parse
from mill.data import WORDS, reviews
from mill.loop import Loop
from mill.nets import Bag

disable_progress_bars()

def load(shots):
    rows = Dataset.from_list(reviews())
    test = rows.select(range(60, 80))
    demos = rows.select(range(60)).shuffle().select(range(shots))  # cause
    return demos, test

def main():
    config = parse(name="helmet", seed=42)
    random.seed(config.seed)
    torch.manual_seed(config.seed)
    demos, test = load(24)
    table = {w: n for n, w in enumerate(WORDS)}
    loop = Loop(config, Bag(len(WORDS)), torch.nn.CrossEntropyLoss())
    loop.fit(*(chunks(ids(part["text"], table), torch.tensor(part["label"]), config.batch) for part in (demos, test)))

if __name__ == "__main__":
    main()
