"""TensorBoard beside a plain loop: scalars of losses and of speeds, text with a date, hparams, histograms, an image, an early stop, a resume."""

import datetime
import os
import platform
import time

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter


class Meter:
    """A smoothed value, as in torchvision's references."""

    def __init__(self, window=10, fmt="{median:.4f} ({global_avg:.4f})"):
        self.values, self.window, self.total, self.count, self.fmt = [], window, 0.0, 0, fmt

    def update(self, value):
        self.values = [*self.values, value][-self.window :]
        self.total += value
        self.count += 1

    @property
    def median(self):
        return torch.tensor(self.values).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg, value=self.values[-1], max=max(self.values))


def log_every(items, every, header):
    start = end = time.time()
    step_time, data_time = Meter(fmt="{value:.4f}"), Meter(fmt="{value:.4f}")
    for i, item in enumerate(items):
        data_time.update(time.time() - end)
        yield item
        step_time.update(time.time() - end)
        if i % every == 0:
            eta = datetime.timedelta(seconds=int(step_time.global_avg * (len(items) - i)))
            print(f"{header} [{i:>{len(str(len(items)))}d}/{len(items)}]  eta: {eta}  time: {step_time}  data: {data_time}")
        end = time.time()
    total = time.time() - start
    print(f"{header} Total time: {datetime.timedelta(seconds=int(total))}")


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 6, 3, 2, 1)
        self.up = nn.ConvTranspose2d(6, 1, 4, 2, 1)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


def main():
    torch.manual_seed(77)
    stamp = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
    folder = os.path.join("runs", stamp + "_" + platform.node())
    writer = SummaryWriter(folder)
    writer.add_text("info", f"started {time.ctime()} by process {os.getpid()}")
    model = Unet()
    opt = torch.optim.Adam(model.parameters(), 5e-3)
    data = [torch.rand(8, 1, 12, 12) for _ in range(12)]
    best, step = None, 0
    start = time.time()
    for epoch in range(3):
        meter = Meter()
        tick = time.perf_counter()
        for x in log_every(data, 5, f"Epoch: [{epoch}]"):
            loss = nn.functional.mse_loss(model(x + 0.1 * torch.randn_like(x)), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            meter.update(loss.item())
            writer.add_scalar("train/loss", loss.item(), step)
            writer.add_scalar("perf/img_per_s", 8 / (time.perf_counter() - tick), step)
            tick = time.perf_counter()
            step += 1
        writer.add_scalars("summary", {"loss": meter.global_avg, "epoch_seconds": time.time() - start}, epoch)
        writer.add_histogram("down", model.down.weight, epoch)
        writer.add_image("sample", model(data[0])[0].detach().clamp(0, 1), epoch)
        print(f"Epoch {epoch}: train_loss: {meter}  ({time.time() - start:.1f}s)")
        if best is None or meter.global_avg < best:
            best = meter.global_avg
            torch.save({"model": model.state_dict(), "optimizer": opt.state_dict(), "epoch": epoch, "best": best, "elapsed": time.time() - start}, "best.pth")
    state = torch.load("best.pth")
    model.load_state_dict(state["model"])
    print(f"resumed from epoch {state['epoch']} after {state['elapsed']:.2f}s, best {best:.6f}")
    writer.add_hparams({"lr": 5e-3, "width": 6}, {"hparam/best": best, "hparam/time": time.time() - start}, run_name="hp")
    writer.close()
    print(f"Training time {datetime.timedelta(seconds=int(time.time() - start))}")


if __name__ == "__main__":
    main()
