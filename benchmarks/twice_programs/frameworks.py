"""Programs that repeat, in the log formats of real frameworks: ``python frameworks.py NAME`` does one.

Each needs its framework; those that end in "_like" have the format of one written by hand.
"""

import os, sys, time, json


def _data(n=96):
    import torch

    g = torch.Generator().manual_seed(1)
    x = torch.randn(n, 6, generator=g)
    return x, (x[:, :2].sum(1) > 0).long()


def _net():
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(12, 2)
    )


def _loader(bs=16, workers=0, seed=3):
    import torch

    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*_data()),
        bs,
        shuffle=True,
        num_workers=workers,
        generator=torch.Generator().manual_seed(seed),
    )


def keras_fit():
    os.environ["KERAS_BACKEND"] = "torch"
    import keras, numpy as np

    keras.utils.set_random_seed(1)
    r = np.random.default_rng(0)
    x = r.normal(size=(96, 6)).astype("float32")
    y = (x[:, 0] > 0).astype("float32")
    m = keras.Sequential(
        [keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
    )
    m.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    h = m.fit(
        x,
        y,
        epochs=3,
        batch_size=16,
        validation_split=0.25,
        callbacks=[
            keras.callbacks.CSVLogger("log.csv"),
            keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True),
        ],
    )
    json.dump(h.history, open("history.json", "w"))
    m.save_weights("w.weights.h5")
    print(m.evaluate(x, y))


def lightning_csv():
    import torch, lightning as L

    class M(L.LightningModule):
        def __init__(s):
            super().__init__()
            s.n = _net()

        def training_step(s, b, i):
            l = torch.nn.functional.cross_entropy(s.n(b[0]), b[1])
            s.log("train_loss", l, prog_bar=True)
            return l

        def validation_step(s, b, i):
            s.log("val_loss", torch.nn.functional.cross_entropy(s.n(b[0]), b[1]), prog_bar=True)

        def configure_optimizers(s):
            return torch.optim.Adam(s.parameters())

    L.seed_everything(3, workers=True)
    t = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=1,
        log_every_n_steps=1,
        logger=L.pytorch.loggers.CSVLogger("logs"),
        callbacks=[
            L.pytorch.callbacks.ModelCheckpoint(monitor="val_loss", filename="{epoch}-{val_loss:.4f}"),
            L.pytorch.callbacks.Timer(),
            L.pytorch.callbacks.TQDMProgressBar(),
        ],
    )
    t.fit(M(), _loader(), _loader(32))
    t.validate(M(), _loader(32))
    print(t.callback_metrics)


def lightning_rich():
    import torch, lightning as L

    class M(L.LightningModule):
        def __init__(s):
            super().__init__()
            s.n = _net()

        def training_step(s, b, i):
            l = torch.nn.functional.cross_entropy(s.n(b[0]), b[1])
            s.log("loss", l, prog_bar=True)
            return l

        def configure_optimizers(s):
            return torch.optim.Adam(s.parameters())

    L.seed_everything(3)
    t = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=1,
        log_every_n_steps=1,
        logger=L.pytorch.loggers.TensorBoardLogger("tb"),
    )
    t.fit(M(), _loader())


def hf_trainer():
    import torch, transformers as T

    T.set_seed(0)
    m = T.BertForSequenceClassification(
        T.BertConfig(
            vocab_size=60,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=16,
        )
    )
    g = torch.Generator().manual_seed(2)
    rows = [{"input_ids": torch.randint(0, 60, (8,), generator=g), "labels": int(i % 2)} for i in range(24)]
    t = T.Trainer(
        m,
        T.TrainingArguments(
            "out",
            num_train_epochs=2,
            per_device_train_batch_size=8,
            logging_steps=1,
            use_cpu=True,
            report_to=[],
            eval_strategy="epoch",
            save_strategy="epoch",
        ),
        train_dataset=rows,
        eval_dataset=rows[:8],
    )
    r = t.train()
    t.log_metrics("train", r.metrics)
    t.save_metrics("train", r.metrics)
    t.save_state()
    print(t.evaluate())


def timm_like():
    import torch, logging

    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stdout)
    log = logging.getLogger("train")

    class Meter:
        def __init__(s):
            s.val = s.sum = s.count = s.avg = 0

        def update(s, v, n=1):
            s.val = v
            s.sum += v * n
            s.count += n
            s.avg = s.sum / s.count

    n = _net()
    o = torch.optim.AdamW(n.parameters())
    rows = []
    for e in range(2):
        bt, dt, lm = Meter(), Meter(), Meter()
        end = time.time()
        dl = _loader()
        for i, (x, y) in enumerate(dl):
            dt.update(time.time() - end)
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            o.step()
            lm.update(l.item(), len(x))
            bt.update(time.time() - end)
            log.info(
                "Train: {} [{:>4d}/{} ({:>3.0f}%)]  Loss: {:#.3g} ({:#.3g})  Time: {:.3f}s, {:>7.2f}/s  ({:.3f}s, {:>7.2f}/s)  LR: {:.3e}  Data: {:.3f} ({:.3f})".format(
                    e,
                    i,
                    len(dl),
                    100.0 * i / (len(dl) - 1),
                    lm.val,
                    lm.avg,
                    bt.val,
                    len(x) / bt.val,
                    bt.avg,
                    len(x) / bt.avg,
                    1e-3,
                    dt.val,
                    dt.avg,
                )
            )
            end = time.time()
        rows.append((e, lm.avg))
        torch.save(
            {"epoch": e, "state_dict": n.state_dict(), "arch": "net", "metric": lm.avg},
            f"checkpoint-{e}.pth.tar",
        )
    import csv

    w = csv.writer(open("summary.csv", "w"))
    w.writerow(["epoch", "train_loss"])
    w.writerows(rows)


def detectron_like():
    import torch, datetime, logging
    from collections import deque

    logging.basicConfig(
        format="[%(asctime)s %(name)s]: %(message)s",
        datefmt="%m/%d %H:%M:%S",
        level=logging.INFO,
        stream=sys.stdout,
    )
    log = logging.getLogger("d2.utils.events")
    n = _net()
    o = torch.optim.SGD(n.parameters(), 0.05, momentum=0.9)
    ts, ds = deque(maxlen=20), deque(maxlen=20)
    ms = open("metrics.json", "w")
    it = 0
    total = 24
    begun = time.perf_counter()
    import statistics

    for e in range(4):
        t0 = time.perf_counter()
        for x, y in _loader():
            d = time.perf_counter() - t0
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            o.step()
            it += 1
            ds.append(d)
            ts.append(time.perf_counter() - t0)
            if it % 4 == 0:
                eta = statistics.median(ts) * (total - it - 1)
                log.info(
                    " eta: %s  iter: %d  total_loss: %.4g  time: %.4f  last_time: %.4f  data_time: %.4f  lr: %.5g  max_mem: 512M",
                    datetime.timedelta(seconds=int(eta)),
                    it - 1,
                    l.item(),
                    sum(ts) / len(ts),
                    ts[-1],
                    sum(ds) / len(ds),
                    0.05,
                )
                ms.write(
                    json.dumps(
                        {
                            "data_time": ds[-1],
                            "eta_seconds": eta,
                            "iteration": it - 1,
                            "lr": 0.05,
                            "time": ts[-1],
                            "total_loss": l.item(),
                        }
                    )
                    + "\n"
                )
            t0 = time.perf_counter()
    log.info(
        "Overall training speed: %d iterations in %s (%.4f s / it)",
        total,
        str(datetime.timedelta(seconds=int(time.perf_counter() - begun))),
        (time.perf_counter() - begun) / total,
    )
    torch.save(n.state_dict(), "model_final.pth")


def mmengine_like():
    import torch, datetime, logging

    stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime())
    d = f"work_dirs/net/{stamp}/vis_data"
    os.makedirs(d)
    log = logging.getLogger("mmengine")
    log.setLevel("INFO")
    f = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s", "%Y/%m/%d %H:%M:%S")
    for h in (logging.StreamHandler(), logging.FileHandler(f"work_dirs/net/{stamp}/{stamp}.log")):
        h.setFormatter(f)
        log.addHandler(h)
    n = _net()
    o = torch.optim.SGD(n.parameters(), 0.05)
    sc = open(f"{d}/scalars.json", "w")
    last = f"{d}/{stamp}.json"
    s2 = open(last, "w")
    import numpy as np

    hist = []
    dh = []
    total = 12
    i = 0
    t = time.time()
    for e in range(2):
        for k, (x, y) in enumerate(_loader()):
            data = time.time() - t
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            o.step()
            i += 1
            hist.append(time.time() - t)
            dh.append(data)
            t = time.time()
            if (k + 1) % 3 == 0:
                eta = np.mean(hist) * (total - i)
                log.info(
                    f"Epoch(train) [{e + 1}][{k + 1:>2}/6]  lr: 5.0000e-02  eta: {str(datetime.timedelta(seconds=int(eta)))}  time: {np.mean(hist[-10:]):.4f}  data_time: {np.mean(dh[-10:]):.4f}  loss: {l.item():.4f}"
                )
                for s in (sc, s2):
                    s.write(
                        json.dumps(
                            {
                                "lr": 0.05,
                                "data_time": float(np.mean(dh[-10:])),
                                "loss": l.item(),
                                "time": float(np.mean(hist[-10:])),
                                "epoch": e + 1,
                                "iter": i,
                                "step": i,
                            }
                        )
                        + "\n"
                    )
    torch.save(
        {"meta": {"time": stamp, "seed": 0, "epoch": 2}, "state_dict": n.state_dict()},
        "work_dirs/net/epoch_2.pth",
    )
    open("work_dirs/net/last_checkpoint", "w").write(os.path.abspath("work_dirs/net/epoch_2.pth"))


def fairseq_like():
    import torch, logging

    logging.basicConfig(
        format="%(asctime)s | %(levelname)s | %(name)s | %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
        level="INFO",
        stream=sys.stdout,
    )
    log = logging.getLogger("train_inner")
    n = _net()
    o = torch.optim.Adam(n.parameters(), betas=(0.9, 0.98))
    begun = time.time()
    u = 0
    wall = 0
    for e in range(2):
        s = time.time()
        words = 0
        for k, (x, y) in enumerate(_loader()):
            b = time.time()
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            g = torch.nn.utils.clip_grad_norm_(n.parameters(), 1.0)
            o.step()
            u += 1
            words += x.numel()
            wall += time.time() - b
            if u % 2 == 0:
                log.info(
                    f"epoch {e + 1:03d}:  {k + 1:4d} / 6 loss={l.item() / 0.693:.3f}, ppl={2 ** (l.item() / 0.693):.2f}, wps={words / (time.time() - s):.1f}, ups={(k + 1) / (time.time() - s):.2f}, wpb={words / (k + 1):.1f}, bsz=16, num_updates={u}, lr=0.001, gnorm={g.item():.3f}, clip=0, loss_scale=1, train_wall={round(wall)}, wall={round(time.time() - begun)}"
                )
        logging.getLogger("train").info(
            json.dumps(
                {
                    "epoch": e + 1,
                    "train_loss": f"{l.item():.3f}",
                    "train_wps": f"{words / (time.time() - s):.1f}",
                    "train_wall": f"{wall:.0f}",
                }
            )
        )
    log.info(f"done training in {time.time() - begun:.1f} seconds")
    torch.save(
        {
            "args": None,
            "model": n.state_dict(),
            "optimizer_history": [{"num_updates": u}],
            "extra_state": {"metrics": {"loss": l.item()}, "previous_training_time": time.time() - begun},
        },
        "checkpoint_last.pt",
    )


def xgboost_saved():
    import xgboost as xgb, numpy as np

    r = np.random.default_rng(0)
    x = r.normal(size=(200, 5))
    y = x[:, 0] > 0
    d = xgb.DMatrix(x[:150], y[:150])
    v = xgb.DMatrix(x[150:], y[150:])
    h = {}
    t = time.perf_counter()
    b = xgb.train(
        {"objective": "binary:logistic", "seed": 1, "nthread": 2},
        d,
        8,
        evals=[(d, "train"), (v, "valid")],
        evals_result=h,
    )
    print(f"trained in {time.perf_counter() - t:.2f}s")
    b.save_model("m.json")
    b.save_model("m.ubj")
    json.dump(h, open("h.json", "w"))


def lightgbm_verbose():
    import lightgbm as lgb, numpy as np

    r = np.random.default_rng(0)
    x = r.normal(size=(300, 6))
    y = x[:, 0] > 0
    m = lgb.LGBMClassifier(n_estimators=10, random_state=1, n_jobs=2, deterministic=True).fit(
        x, y, eval_set=[(x, y)], callbacks=[lgb.log_evaluation(1)]
    )
    m.booster_.save_model("m.txt")
    import joblib

    joblib.dump(m, "m.joblib")
    print(m.best_score_)


def catboost_verbose():
    import catboost, numpy as np

    r = np.random.default_rng(0)
    x = r.normal(size=(200, 5))
    y = (x[:, 0] > 0).astype(int)
    m = catboost.CatBoostClassifier(iterations=12, random_seed=1, thread_count=1, verbose=3).fit(x, y)
    m.save_model("m.json", format="json")
    print(m.predict_proba(x[:3]))


def optuna_sql():
    import optuna

    s = optuna.create_study(
        storage="sqlite:///o.db", study_name="a", sampler=optuna.samplers.TPESampler(seed=1)
    )
    s.optimize(lambda t: (t.suggest_float("x", -5, 5) - 1) ** 2 + t.suggest_int("n", 1, 4), n_trials=14)
    print(s.best_params)
    s.trials_dataframe().to_csv("trials.csv")


def optuna_log():
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    s = optuna.create_study(
        storage=JournalStorage(JournalFileBackend("j.log")), sampler=optuna.samplers.RandomSampler(seed=1)
    )
    s.optimize(lambda t: t.suggest_float("x", -5, 5) ** 2, n_trials=5, show_progress_bar=True)
    print(s.best_value)


def mlflow_files():
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri("file:./mlruns")
    mlflow.set_experiment("net")
    import torch

    n = _net()
    o = torch.optim.Adam(n.parameters())
    with mlflow.start_run() as r:
        mlflow.log_params({"lr": 1e-3, "bs": 16})
        for i, (x, y) in enumerate(_loader()):
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            o.step()
            mlflow.log_metric("loss", l.item(), step=i)
        mlflow.log_text("hello", "a.txt")
        print("run", r.info.run_id, r.info.run_name)


def wandb_off():
    os.environ["WANDB_MODE"] = "offline"
    import wandb, torch

    w = wandb.init(project="p", config={"lr": 0.1})
    n = _net()
    o = torch.optim.SGD(n.parameters(), 0.1)
    for x, y in _loader():
        l = torch.nn.functional.cross_entropy(n(x), y)
        o.zero_grad()
        l.backward()
        o.step()
        w.log({"loss": l.item()})
    w.finish()


def async_work():
    import asyncio, random

    async def job(n):
        b = asyncio.get_running_loop().time()
        await asyncio.sleep(0.01 * ((n * 7) % 5))
        return n * n, asyncio.get_running_loop().time() - b

    async def main():
        sem = asyncio.Semaphore(3)

        async def one(n):
            async with sem:
                return await job(n)

        out = await asyncio.gather(*(one(n) for n in range(12)))
        print("values", [v for v, _ in out])
        print(f"slowest {max(t for _, t in out):.4f}s, total {sum(t for _, t in out):.3f}s")
        json.dump([{"n": n, "value": v, "seconds": t} for n, (v, t) in enumerate(out)], open("o.json", "w"))

    asyncio.run(main())


def _work(a):
    import logging

    n, q = a
    import random

    random.seed(n)
    s = sum(random.random() for _ in range(2000))
    time.sleep(0.01)
    logging.getLogger().info("task %d gave %.6f", n, s)
    return s


def _init(q):
    import logging, logging.handlers

    r = logging.getLogger()
    r.handlers = [logging.handlers.QueueHandler(q)]
    r.setLevel("INFO")


def mp_log():
    import multiprocessing as mp, logging, logging.handlers

    c = mp.get_context("fork")
    q = c.Queue()
    h = logging.StreamHandler()
    h.setFormatter(logging.Formatter("%(asctime)s %(processName)s %(process)d %(levelname)s %(message)s"))
    l = logging.handlers.QueueListener(q, h)
    l.start()
    with c.Pool(3, _init, (q,)) as p:
        out = p.map(_work, [(n, None) for n in range(12)], chunksize=2)
        p.close()
        p.join()
    l.stop()
    print(f"mean {sum(out) / 12:.9f}")
    json.dump(out, open("o.json", "w"))


def rich_loguru():
    from loguru import logger
    from rich.progress import track
    from rich.table import Table
    from rich.console import Console

    t = Table("epoch", "loss", "seconds")
    for e in track(range(8), description="train"):
        b = time.perf_counter()
        time.sleep(0.02)
        logger.info("epoch {} loss={:.4f}", e, 1 / (e + 1))
        t.add_row(str(e), f"{1 / (e + 1):.4f}", f"{time.perf_counter() - b:.3f}")
    Console().print(t)
    logger.add("log_{time}.txt")
    logger.success("done")


def sk_search():
    import joblib, pandas as pd
    from sklearn.datasets import make_regression
    from sklearn.model_selection import GridSearchCV
    from sklearn.linear_model import Ridge

    x, y = make_regression(120, 6, random_state=0)
    s = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=3, verbose=3).fit(x, y)
    pd.DataFrame(s.cv_results_).to_csv("cv.csv")
    print("best", s.best_score_, f"refit {s.refit_time_:.4f} s")
    joblib.dump(s.best_estimator_, "m.joblib")


def skorch_like():
    import torch

    n = _net()
    o = torch.optim.Adam(n.parameters())
    print("  epoch    train_loss    valid_acc     dur")
    print("-------  ------------  -----------  ------")
    hist = []
    for e in range(5):
        b = time.time()
        for x, y in _loader(workers=2):
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            o.step()
        d = time.time() - b
        hist.append({"epoch": e + 1, "dur": d, "train_loss": l.item()})
        print(f"{e + 1:7d}  {l.item():12.4f}  {0.5:11.4f}  {d:6.4f}")
    json.dump(hist, open("history.json", "w"))


def ignite_like():
    import torch
    from ignite.engine import Engine, Events
    from ignite.handlers.tqdm_logger import ProgressBar
    from ignite.metrics import RunningAverage
    import logging

    logging.basicConfig(level="INFO")
    n = _net()
    o = torch.optim.Adam(n.parameters())

    def step(e, b):
        l = torch.nn.functional.cross_entropy(n(b[0]), b[1])
        o.zero_grad()
        l.backward()
        o.step()
        return l.item()

    e = Engine(step)
    e.logger.setLevel("INFO")
    RunningAverage(output_transform=lambda v: v).attach(e, "loss")
    ProgressBar().attach(e, ["loss"])
    e.run(_loader(), max_epochs=2)
    print(e.state.metrics, e.state.times)


def board_hparams():
    import torch
    from torch.utils.tensorboard import SummaryWriter

    n = _net()
    o = torch.optim.SGD(n.parameters(), 0.1)
    w = SummaryWriter()
    t = time.time()
    for i, (x, y) in enumerate(_loader()):
        l = torch.nn.functional.cross_entropy(n(x), y)
        o.zero_grad()
        l.backward()
        o.step()
        w.add_scalar("loss", l.item(), i)
        w.add_scalar("perf/time", time.time() - t, i)
        w.add_histogram("w", n[0].weight, i)
    w.add_hparams({"lr": 0.1}, {"m": l.item()})
    w.add_text("t", "v")
    w.close()


def tables():
    import numpy as np, pandas as pd, pyarrow as pa, pyarrow.parquet as pq, pickle, sqlite3, zipfile, gzip, h5py

    r = np.random.default_rng(0)
    f = pd.DataFrame({"a": r.normal(size=50), "b": r.integers(0, 9, 50)})
    f.to_parquet("f.parquet")
    f.to_csv("f.csv")
    f.to_pickle("f.pkl")
    np.savez_compressed("f.npz", a=f.a, b=f.b)
    np.save("f.npy", f.a)
    c = sqlite3.connect("f.db")
    f.to_sql("t", c)
    c.commit()
    f.to_json("f.json", indent=1)
    pa.feather = __import__("pyarrow.feather").feather
    pa.feather.write_feather(f, "f.feather")
    h = h5py.File("f.h5", "w")
    h["a"] = f.a.to_numpy()
    h.close()
    pickle.dump({"acc": 0.5, "n": 3}, open("r.pkl", "wb"))
    import torch
    from safetensors.torch import save_file

    save_file(
        {k: v for k, v in _net().state_dict().items()},
        "m.safetensors",
        metadata={"format": "pt", "loss": "0.25", "epoch": "3", "lr": "0.1"},
    )
    torch.jit.trace(_net().eval(), torch.zeros(1, 6)).save("s.pt")
    torch.save(_net(), "whole.pt")


def hydra_app():
    import hydra, omegaconf

    sys.argv = ["app.py"]

    @hydra.main(version_base=None, config_path=None)
    def app(cfg):
        import logging

        logging.getLogger("app").info("score %.4f", 0.25)
        open("r.txt", "w").write("0.5")

    app()


def unittest_verbose():
    import unittest

    class T(unittest.TestCase):
        def test_a(s):
            time.sleep(0.02)

    unittest.main(
        argv=["x", "-v"],
        module=None,
        testLoader=type(
            "L",
            (unittest.TestLoader,),
            {
                "loadTestsFromNames": lambda s, *a: s.loadTestsFromTestCase(T),
                "loadTestsFromModule": lambda s, *a, **k: s.loadTestsFromTestCase(T),
            },
        )(),
    )


def tqdm_train():
    import torch
    from tqdm import tqdm

    n = _net()
    o = torch.optim.Adam(n.parameters())
    for e in range(2):
        bar = tqdm(_loader(workers=2), desc=f"Epoch {e}", unit="batch")
        for x, y in bar:
            l = torch.nn.functional.cross_entropy(n(x), y)
            o.zero_grad()
            l.backward()
            o.step()
            time.sleep(0.02)
            bar.set_postfix(loss=f"{l.item():.4f}")


def nanogpt_like():
    import torch

    n = _net()
    o = torch.optim.AdamW(n.parameters())
    t0 = time.time()
    mfu = -1.0
    for i, (x, y) in enumerate(_loader()):
        l = torch.nn.functional.cross_entropy(n(x), y)
        o.zero_grad()
        l.backward()
        o.step()
        t1 = time.time()
        dt = t1 - t0
        t0 = t1
        m = 1e6 / dt / 312e12
        mfu = m if mfu < 0 else 0.9 * mfu + 0.1 * m
        print(
            f"iter {i}: loss {l.item():.4f}, time {dt * 1000:.2f}ms, mfu {mfu * 100:.2f}%, tok/sec: {x.numel() / dt:.0f}"
        )


def imagenet_like():
    import torch

    n = _net()
    o = torch.optim.SGD(n.parameters(), 0.1)
    end = time.time()
    bs = []
    ds = []
    for i, (x, y) in enumerate(_loader()):
        ds.append(time.time() - end)
        l = torch.nn.functional.cross_entropy(n(x), y)
        o.zero_grad()
        l.backward()
        o.step()
        bs.append(time.time() - end)
        end = time.time()
        print(
            "\t".join(
                [
                    f"Epoch: [0][{i}/6]",
                    f"Time {bs[-1]:6.3f} ({sum(bs) / len(bs):6.3f})",
                    f"Data {ds[-1]:6.3f} ({sum(ds) / len(ds):6.3f})",
                    f"Loss {l.item():.4e}",
                ]
            )
        )


if __name__ == "__main__":
    globals()[sys.argv[1]]()
