"""Style of rgbarriadaphd/cardio_events (templates/summary_*.tpl, cross-validation of a CNN). Differs in each run: the date
of the summary and its file name, elapsed train and test times of each fold, the mean of these and the log's clock."""
import datetime
import logging
import os
import time
from string import Template

import numpy as np
import torch
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STAMP = datetime.datetime.now().strftime("%d-%m-%Y_%H-%M-%S")
os.makedirs("output", exist_ok=True)
logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)-8s | %(message)s", datefmt="%d/%m/%y %H:%M:%S",
                    handlers=[logging.StreamHandler(), logging.FileHandler(f"output/log_{STAMP}.log")])
CFG = dict(model="small_cnn", normalized=True, epochs=6, batch_size=32, learning_rate=0.02, optimizer="SGD", folds=4)

HEAD = Template("""Train Summary Report
$datetime

=================================
Global Configuration:
---------------------

Architecture: $model
Normalized: $normalized
Hyperparams:
\tEpochs: $epochs
\tBatch size: $batch_size
\tLearning rate: $learning_rate
\tOptimizer: $optimizer

=================================
Fold results:
---------------------
""")
FOLD = Template("""
Fold [$fold_id]: train ($n_train) / test ($n_test)
\tNormalization: (mean=$mean, std=$std)
\tElapsed time: train=$fold_train_time, test=$fold_test_time
\tAccuracy: $accuracy
\tPrecision: $precision
\tRecall: $recall
\tF1: $f1
\tConfusion Matrix: $tn , $fp
\t                  $fn , $tp
""")
TAIL = Template("""
=================================
Global results:
---------------------

Mean accuracy: $acc_mean +- $acc_std
Mean training time per fold: $t_mean (total $t_total)
Report written $datetime
""")


def make_images(n=480, size=24):
    rng = np.random.default_rng(33)
    y = rng.integers(0, 2, n)
    x = rng.normal(0, 1, (n, 1, size, size)).astype(np.float32)
    for i in np.where(y == 1)[0]:
        r, c = rng.integers(4, size - 8, 2)
        x[i, 0, r:r + 6, c:c + 6] += 1.4
    return x, y


def elapsed(t0):
    return str(datetime.timedelta(seconds=time.time() - t0))


def train(model, loader, fold):
    opt = torch.optim.SGD(model.parameters(), lr=CFG["learning_rate"], momentum=0.9)
    crit = nn.CrossEntropyLoss()
    t0 = time.time()
    for epoch in range(CFG["epochs"]):
        te, total = time.time(), 0.0
        model.train()
        for xb, yb in loader:
            opt.zero_grad()
            loss = crit(model(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item() * len(yb)
        logging.info(f"Fold {fold} epoch {epoch + 1}/{CFG['epochs']} loss={total / len(loader.dataset):.6f} "
                     f"({time.time() - te:.2f} s/epoch, remaining {(CFG['epochs'] - epoch - 1) * (time.time() - te):.1f} s)")
    return elapsed(t0)


def main():
    torch.set_num_threads(1)
    x, y = make_images()
    logging.info("Dataset: %d images, %d positive, loaded", len(y), y.sum())
    report, accs, times, preds = HEAD.substitute(CFG, datetime=STAMP), [], [], np.zeros(len(y), int)
    t_all = time.time()
    for fold, (tr, te) in enumerate(StratifiedKFold(CFG["folds"], shuffle=True, random_state=0).split(x, y), 1):
        torch.manual_seed(fold)
        mean, std = x[tr].mean(), x[tr].std()
        norm = lambda a: torch.from_numpy((a - mean) / std)
        loader = DataLoader(TensorDataset(norm(x[tr]), torch.from_numpy(y[tr])), batch_size=CFG["batch_size"], shuffle=True)
        model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
                              nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(64, 2))
        tf = time.time()
        train_time = train(model, loader, fold)
        times.append(time.time() - tf)
        t1 = time.time()
        model.eval()
        with torch.no_grad():
            p = model(norm(x[te])).argmax(1).numpy()
        test_time = elapsed(t1)
        preds[te] = p
        acc = float((p == y[te]).mean())
        pr, rc, f1, _ = precision_recall_fscore_support(y[te], p, average="binary", zero_division=0)
        tn, fp, fn, tp = confusion_matrix(y[te], p).ravel()
        accs.append(acc)
        report += FOLD.substitute(fold_id=fold, n_train=len(tr), n_test=len(te), mean=f"{mean:.6f}", std=f"{std:.6f}",
                                  fold_train_time=train_time, fold_test_time=test_time, accuracy=f"{100 * acc:.2f}",
                                  precision=f"{pr:.4f}", recall=f"{rc:.4f}", f1=f"{f1:.4f}", tn=tn, fp=fp, fn=fn, tp=tp)
        torch.save(model.state_dict(), f"output/small_cnn_fold{fold}.pt")
        logging.info("Fold %d finished: accuracy %.4f, train %s, test %s", fold, acc, train_time, test_time)
    report += TAIL.substitute(acc_mean=f"{np.mean(accs):.4f}", acc_std=f"{np.std(accs):.4f}",
                              t_mean=f"{np.mean(times):.2f} s", t_total=elapsed(t_all),
                              datetime=datetime.datetime.now().strftime("%A, %d. %B %Y %I:%M:%S%p"))
    with open(f"output/summary_{STAMP}.txt", "w") as f:
        f.write(report)
    np.savetxt("output/predictions.csv", np.c_[np.arange(len(y)), y, preds], fmt="%d", delimiter=",", header="id,y,pred", comments="")
    print(report)


if __name__ == "__main__":
    main()
