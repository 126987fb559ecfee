import json
import time

import torch
from torch.utils.data import DataLoader


class Callback:
    def on_step_end(self, step, logs):
        pass

    def on_train_end(self, logs):
        pass


class Printer(Callback):
    def on_step_end(self, step, logs):
        print({"loss": round(logs["loss"], 4), "step": step})

    def on_train_end(self, logs):
        print(logs)


class Trainer:
    def __init__(self, model, args, data, collator, optimizer, callbacks=()):
        self.model, self.args, self.optimizer = model, args, optimizer
        self.callbacks = callbacks
        self.loader = DataLoader(data, args.per_device_batch_size, shuffle=True, collate_fn=collator)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))

    def batches(self):
        while True:
            yield from self.loader

    def training_step(self, inputs):
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.model(**inputs).loss / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def train(self):
        started = time.time()
        batches = self.batches()
        for step in range(self.args.max_steps):
            total = 0.0
            for _ in range(self.args.gradient_accumulation_steps):
                total += self.training_step(next(batches)).item()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
            for callback in self.callbacks:
                callback.on_step_end(step, {"loss": total})
        took = time.time() - started
        logs = {
            "train_runtime": round(took, 4),
            "train_samples_per_second": round(self.args.max_steps / took, 3),
            "train_steps_per_second": round(self.args.max_steps / took, 3),
            "epoch": 1.0,
        }
        for callback in self.callbacks:
            callback.on_train_end(logs)
        with open("trainer_state.json", "w") as file:
            json.dump(logs, file, indent=2)
