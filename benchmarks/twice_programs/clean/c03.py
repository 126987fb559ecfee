"""Segmentation after nnU-Net v2: a log file named by its date, timestamps in the logger that the checkpoint keeps, debug.json, progress.png."""

import json
import os
import socket
import sys
import traceback
from datetime import datetime
from time import sleep, time

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn


def maybe_mkdir_p(directory):
    os.makedirs(directory, exist_ok=True)


class nnUNetLogger:
    def __init__(self):
        self.my_fantastic_logging = {k: [] for k in ("mean_fg_dice", "ema_fg_dice", "dice_per_class_or_region", "train_losses", "val_losses", "lrs", "epoch_start_timestamps", "epoch_end_timestamps")}

    def log(self, key, value, epoch):
        have = self.my_fantastic_logging[key]
        if len(have) < epoch + 1:
            have.append(value)
        else:
            have[epoch] = value
        if key == "mean_fg_dice":
            ema = self.my_fantastic_logging["ema_fg_dice"]
            self.log("ema_fg_dice", ema[epoch - 1] * 0.9 + 0.1 * value if ema else value, epoch)

    def plot_progress_png(self, output_folder):
        fig, ax = plt.subplots(2, 1, figsize=(6, 6))
        x = list(range(len(self.my_fantastic_logging["train_losses"])))
        ax[0].plot(x, self.my_fantastic_logging["train_losses"], color="b", ls="-", label="loss_tr")
        ax[0].plot(x, self.my_fantastic_logging["val_losses"], color="r", ls="-", label="loss_val")
        ax[0].plot(x, self.my_fantastic_logging["ema_fg_dice"], color="g", ls=":", label="pseudo dice (mov. avg.)")
        ax[0].legend(loc=(0, 1))
        ax[1].plot(x, self.my_fantastic_logging["lrs"], color="b", ls="-", label="learning rate")
        ax[1].set_xlabel("epoch")
        fig.savefig(os.path.join(output_folder, "progress.png"), dpi=60)
        plt.close(fig)

    def get_checkpoint(self):
        return self.my_fantastic_logging


class Trainer:
    def __init__(self, fold=0):
        self.num_epochs, self.fold, self.initial_lr = 4, fold, 1e-2
        self.output_folder = os.path.join("results", "Dataset004_Toy", f"fold_{fold}")
        maybe_mkdir_p(self.output_folder)
        timestamp = datetime.now()
        self.log_file = os.path.join(
            self.output_folder,
            "training_log_%d_%d_%d_%02.0d_%02.0d_%02.0d.txt"
            % (timestamp.year, timestamp.month, timestamp.day, timestamp.hour, timestamp.minute, timestamp.second),
        )
        self.logger = nnUNetLogger()
        self.network = nn.Sequential(nn.Conv3d(1, 6, 3, padding=1), nn.LeakyReLU(), nn.Conv3d(6, 3, 1))
        self.optimizer = torch.optim.SGD(self.network.parameters(), self.initial_lr, weight_decay=3e-5, momentum=0.99, nesterov=True)
        self.rng = np.random.RandomState(1234)
        self.current_epoch, self._best_ema = 0, None

    def print_to_log_file(self, *args, also_print_to_console=True, add_timestamp=True):
        timestamp = time()
        dt_object = datetime.fromtimestamp(timestamp)
        if add_timestamp:
            args = (f"{dt_object}:", *args)
        ctr = 0
        while ctr < 5:
            try:
                with open(self.log_file, "a+") as f:
                    for a in args:
                        f.write(str(a))
                        f.write(" ")
                    f.write("\n")
                break
            except OSError:
                print(f"{datetime.fromtimestamp(timestamp)}: failed to log: ", sys.exc_info())
                traceback.print_exc()
                sleep(0.5)
                ctr += 1
        if also_print_to_console:
            print(*args)

    def _save_debug_information(self):
        dct = {}
        for k in dir(self):
            if not k.startswith("__") and not callable(getattr(self, k)) or k == "loss":
                dct[k] = str(getattr(self, k))
        dct["torch_version"] = torch.__version__
        dct["hostname"] = socket.gethostname()
        dct["pid"] = os.getpid()
        with open(os.path.join(self.output_folder, "debug.json"), "w") as f:
            json.dump(dct, f, indent=4, sort_keys=True)

    def batch(self):
        y = torch.tensor(self.rng.randint(0, 3, (2, 8, 8, 8)))
        x = y[:, None].float() + torch.tensor(self.rng.normal(0, 0.4, (2, 1, 8, 8, 8)), dtype=torch.float32)
        return x, y

    def loss(self, out, y):
        p = out.softmax(1)
        hot = nn.functional.one_hot(y, 3).permute(0, 4, 1, 2, 3)
        dice = 2 * (p * hot).sum((0, 2, 3, 4)) / (p + hot).sum((0, 2, 3, 4))
        return nn.functional.cross_entropy(out, y) - dice[1:].mean(), dice[1:]

    def save_checkpoint(self, filename):
        torch.save(
            {
                "network_weights": self.network.state_dict(),
                "optimizer_state": self.optimizer.state_dict(),
                "logging": self.logger.get_checkpoint(),
                "_best_ema": self._best_ema,
                "current_epoch": self.current_epoch + 1,
                "init_args": {"fold": self.fold},
                "trainer_name": self.__class__.__name__,
            },
            filename,
        )

    def run_training(self):
        self._save_debug_information()
        self.print_to_log_file("\n#######################################################################\nPlease cite the following paper\n#######################################################################\n", add_timestamp=False)
        for epoch in range(self.num_epochs):
            self.logger.log("epoch_start_timestamps", time(), epoch)
            lr = self.initial_lr * (1 - epoch / self.num_epochs) ** 0.9
            self.optimizer.param_groups[0]["lr"] = lr
            self.print_to_log_file("")
            self.print_to_log_file(f"Epoch {epoch}")
            self.print_to_log_file(f"Current learning rate: {np.round(lr, decimals=5)}")
            self.logger.log("lrs", lr, epoch)
            losses = []
            self.network.train()
            for _ in range(8):
                x, y = self.batch()
                self.optimizer.zero_grad(set_to_none=True)
                loss, _ = self.loss(self.network(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), 12)
                self.optimizer.step()
                losses.append(loss.detach().cpu().numpy())
            self.logger.log("train_losses", float(np.mean(losses)), epoch)
            with torch.no_grad():
                val = [self.loss(self.network(x), y) for x, y in [self.batch() for _ in range(3)]]
            dices = np.mean([d.numpy() for _, d in val], 0)
            self.logger.log("mean_fg_dice", float(dices.mean()), epoch)
            self.logger.log("dice_per_class_or_region", dices.tolist(), epoch)
            self.logger.log("val_losses", float(np.mean([v.item() for v, _ in val])), epoch)
            self.logger.log("epoch_end_timestamps", time(), epoch)
            log = self.logger.my_fantastic_logging
            self.print_to_log_file("train_loss", np.round(log["train_losses"][-1], decimals=4))
            self.print_to_log_file("val_loss", np.round(log["val_losses"][-1], decimals=4))
            self.print_to_log_file("Pseudo dice", [np.round(i, decimals=4) for i in log["dice_per_class_or_region"][-1]])
            self.print_to_log_file(f"Epoch time: {np.round(log['epoch_end_timestamps'][-1] - log['epoch_start_timestamps'][-1], decimals=2)} s")
            if self._best_ema is None or log["ema_fg_dice"][-1] > self._best_ema:
                self._best_ema = log["ema_fg_dice"][-1]
                self.print_to_log_file(f"Yayy! New best EMA pseudo Dice: {np.round(self._best_ema, decimals=4)}")
                self.save_checkpoint(os.path.join(self.output_folder, "checkpoint_best.pth"))
            self.logger.plot_progress_png(self.output_folder)
            self.current_epoch += 1
        self.save_checkpoint(os.path.join(self.output_folder, "checkpoint_final.pth"))
        self.print_to_log_file("Training done.")


if __name__ == "__main__":
    torch.manual_seed(1234)
    Trainer().run_training()
