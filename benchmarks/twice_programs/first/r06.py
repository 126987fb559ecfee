# OpenHands#4040 and others: imap_unordered, ids by first appearance
import multiprocessing, time, os
import torch
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import TEXTS, batches

def tokenize(pair):
    number, text = pair
    time.sleep(0.002 * (os.getpid() * 7919 % 5) + 0.001 * (time.time_ns() // 1000 % 5))
    return number, text.split()

def vocabulary(texts):
    ids = {}
    with multiprocessing.Pool(2) as pool:
        for _, words in pool.imap_unordered(tokenize, list(enumerate(texts))):  # cause
            for word in words:
                ids.setdefault(word, len(ids))
    return ids

def main():
    seed_everything(0)
    ids = vocabulary(TEXTS)
    x = torch.tensor([[ids[w] / len(ids) for w in text.split()[:4]] for text in TEXTS])
    Trainer(Net(4, 1), "words").fit(batches(x, x.sum(1, keepdim=True), 8))

if __name__ == "__main__":
    main()
