"""Text classification after accelerate's no_trainer examples: its logger, bars, save_state, a JSON-lines tracker, all_results.json."""

import json
import logging
import math
import os
import time

os.environ["ACCELERATE_USE_CPU"] = "true"
import psutil
import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.tracking import GeneralTracker, on_main_process
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

logger = get_logger(__name__)


class JsonLinesTracker(GeneralTracker):
    name = "jsonl"
    requires_logging_directory = True

    @on_main_process
    def __init__(self, run_name, logging_dir="."):
        super().__init__()
        os.makedirs(logging_dir, exist_ok=True)
        self.file = open(os.path.join(logging_dir, run_name + ".jsonl"), "w")
        self.began = time.time()

    @property
    def tracker(self):
        return self.file

    @on_main_process
    def store_init_configuration(self, values):
        self.file.write(json.dumps({"config": values, "started": time.time()}) + "\n")

    @on_main_process
    def log(self, values, step=None):
        self.file.write(json.dumps({"_step": step, "_timestamp": time.time(), "_runtime": time.time() - self.began, **values}) + "\n")

    @on_main_process
    def finish(self):
        self.file.close()


class Sentences(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(0, 50, (n, 10), generator=g)
        self.y = (self.x.float().mean(1) > 25).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.y[i]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.EmbeddingBag(50, 16)
        self.net = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 2))

    def forward(self, input_ids, labels):
        logits = self.net(self.emb(input_ids))
        return nn.functional.cross_entropy(logits, labels), logits


class TorchTracemalloc:
    def __enter__(self):
        self.process = psutil.Process()
        self.begin = self.process.memory_info().rss
        self.clock = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.end = self.process.memory_info().rss
        self.used = (self.end - self.begin) // 2**20
        self.took = time.perf_counter() - self.clock


def main():
    accelerator = Accelerator(log_with=JsonLinesTracker("glue", "logs"), gradient_accumulation_steps=2)
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO)
    logger.info(accelerator.state, main_process_only=False)
    set_seed(42)
    train = DataLoader(Sentences(160, 1), 16, shuffle=True)
    evals = DataLoader(Sentences(64, 2), 32)
    model = Classifier()
    opt = torch.optim.AdamW(model.parameters(), 2e-2)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, 15)
    model, opt, train, evals, sched = accelerator.prepare(model, opt, train, evals, sched)
    accelerator.init_trackers("glue_no_trainer", {"lr": 2e-2, "epochs": 3})
    total = 3 * math.ceil(len(train) / 2)
    logger.info("***** Running training *****")
    logger.info(f"  Num examples = {len(train.dataset)}")
    logger.info(f"  Total optimization steps = {total}")
    bar = tqdm(range(total), disable=not accelerator.is_local_main_process)
    done, memory = 0, []
    began = time.time()
    for epoch in range(3):
        with TorchTracemalloc() as m:
            model.train()
            total_loss = 0
            for batch in train:
                with accelerator.accumulate(model):
                    loss, _ = model(**batch)
                    total_loss += loss.detach().float()
                    accelerator.backward(loss)
                    opt.step()
                    sched.step()
                    opt.zero_grad()
                if accelerator.sync_gradients:
                    bar.update(1)
                    done += 1
        accelerator.print(f"Memory before entering the train : {m.begin / 2**20:.0f}")
        accelerator.print(f"Memory consumed at the end of the train (end-begin): {m.used} MB, took {m.took:.2f}s")
        memory.append(m.used)
        model.eval()
        hits = 0
        for batch in evals:
            with torch.no_grad():
                _, logits = model(**batch)
            guess, truth = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            hits += (guess == truth).sum().item()
        metric = {"accuracy": hits / len(evals.dataset)}
        logger.info(f"epoch {epoch}: {metric}")
        accelerator.log({**metric, "train_loss": total_loss.item() / len(train), "epoch": epoch, "step": done, "rss_mb": m.end / 2**20}, step=done)
        accelerator.save_state(f"out/epoch_{epoch}")
    took = time.time() - began
    accelerator.wait_for_everyone()
    accelerator.save_model(model, "out")
    with open("out/all_results.json", "w") as f:
        json.dump({"eval_accuracy": metric["accuracy"], "train_runtime": took, "samples_per_second": 3 * 160 / took, "memory": memory}, f)
    accelerator.end_training()


if __name__ == "__main__":
    main()
