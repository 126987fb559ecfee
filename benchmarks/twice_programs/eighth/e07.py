"""https://github.com/fastai/fastai/pull/2006 : the random train/valid split is not reproducible because os.scandir() lists the
files in another order each time before the seeded permutation; fixed by sorting the entries."""
import json
import random
import time

import numpy as np
import torch

from e07_photos.blocks import ItemList
from e07_photos.learner import Learner, cnn
from e07_photos.prepare import CLASSES, prepare

DATA = "photos"
SEED = 34


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def main():
    t = time.time()
    prepare(DATA)
    print("prepared in %.2f s" % (time.time() - t))
    set_seed(SEED)
    train_items, valid_items = ItemList.from_folder(DATA).split_by_rand_pct(0.25, seed=SEED)
    print(len(train_items), "train shards,", len(valid_items), "valid shards")
    learner = Learner(cnn(CLASSES), train_items.dataset(), valid_items.dataset())
    learner.fit(3)
    for row in learner.recorder:
        print("{epoch:>3} {train_loss:.6f} {valid_loss:.6f} {accuracy:.4f}".format(**row))
    with open("history.json", "w") as f:
        json.dump(learner.recorder, f)
    print(time.strftime("done %d.%m.%Y %H:%M"), "after %.1f s" % (time.time() - t))


if __name__ == "__main__":
    main()
