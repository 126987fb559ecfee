"""Small programs that repeat, or that end badly in the same way each time. ``python clean.py NAME`` runs
one."""

import copy
import os
import queue
import random
import subprocess
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset


def steps(model, loss, count=4, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(count):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()


class Augmented(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, at):
        image = torch.full((1, 8, 8), float(at)) + torch.randn(1, 8, 8)
        return image.flip(-1) if torch.rand(()) < 0.5 else image, at % 3


def classifier():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    for epoch in range(2):
        started = time.time()
        for images, labels in DataLoader(Augmented(), batch_size=8, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        schedule.step()
        print(f"epoch {epoch}: loss {loss.item()}, {time.time() - started:.3f} s")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")


def transformer():
    torch.manual_seed(0)
    text = torch.tensor([ord(c) % 32 for c in "to be or not to be, that is the question" * 4])
    embed, layer, head = (
        nn.Embedding(32, 16),
        nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True),
        nn.Linear(16, 32),
    )
    model = nn.Sequential(embed, layer, head)
    steps(model, lambda m: nn.functional.cross_entropy(m(text[None, :40])[0], text[1:41]), 3)


def ranking():
    torch.manual_seed(0)
    model = nn.EmbeddingBag(50, 8, sparse=True)
    optimizer = torch.optim.SparseAdam(list(model.parameters()))
    steps(model, lambda m: m(torch.arange(20).view(4, 5)).pow(2).sum(), 3, optimizer)


def accumulation():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    for number, (batch,) in enumerate(DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=2)):
        model(batch).sum().backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


def two_optimizers():
    torch.manual_seed(0)
    maker, judge = nn.Linear(4, 4), nn.Linear(4, 1)
    optimizers = [torch.optim.Adam(maker.parameters()), torch.optim.SGD(judge.parameters(), lr=0.1)]
    for _ in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
            judge(maker(torch.randn(8, 4))).mean().backward()
            optimizer.step()


def optimizer_per_task():
    torch.manual_seed(0)
    model, x = nn.Linear(4, 1), torch.randn(16, 4)
    for task in range(12):  # an address is used again once the optimizer that had it is gone
        learner = copy.deepcopy(model)
        steps(learner, lambda m, task=task: (m(x) - task).square().mean(), 2)


def training_in_threads():
    """Which thread gets which task, and who is first, is another one in each run; the results are not."""
    from concurrent.futures import ThreadPoolExecutor

    def trained(task):
        time.sleep(random.SystemRandom().random() / 50)
        generator = torch.Generator().manual_seed(task)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.1 * task)
        x = torch.randn(8, 4, generator=generator)
        steps(model, lambda m: m(x).square().mean(), 3 + task, torch.optim.Adam(model.parameters()))
        return model[2].bias.item()

    with ThreadPoolExecutor(3) as pool:
        print(list(pool.map(trained, range(8))))


def one_task_in_threads():
    """As above, but one task starts from what the system draws."""
    from concurrent.futures import ThreadPoolExecutor

    def trained(task):
        model = nn.Linear(1, 1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(random.SystemRandom().random() if task == 5 else task)
        steps(model, lambda m: m(torch.ones(1, 1)).square().mean())

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(trained, range(8)))


def prefetching():
    """A thread reads ahead of the steps, now more, now less."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = DataLoader(TensorDataset(torch.arange(64.0).reshape(16, 4)), 2, shuffle=True)
    ahead = queue.Queue()

    def fill():
        for batch in loader:
            time.sleep(ord(os.urandom(1)) / 2e4)
            ahead.put(batch[0])
        ahead.put(None)

    threading.Thread(target=fill, daemon=True).start()
    for batch in iter(ahead.get, None):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


def lbfgs():
    torch.manual_seed(0)
    model, inputs = nn.Linear(4, 1), torch.randn(8, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = (model(inputs) - 1).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)


def checkpointing():
    torch.manual_seed(0)
    inner, head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5)), nn.Linear(8, 1)
    model = nn.ModuleList([inner, head])
    steps(model, lambda m: m[1](checkpoint(m[0], torch.ones(2, 4), use_reentrant=False)).sum())


def mixed_precision():
    torch.manual_seed(0)

    def loss(model):
        with torch.autocast("cpu", torch.bfloat16):
            return model(torch.ones(2, 4)).float().sum()

    steps(nn.Linear(4, 4), loss)


def not_numbers():
    torch.manual_seed(0)
    steps(nn.Linear(4, 4), lambda m: m(torch.full((2, 4), float("nan"))).sum())


def inference():
    torch.manual_seed(0)
    model = nn.Linear(4, 4).eval()
    with torch.no_grad():
        for number in range(5):
            print(model(torch.full((1, 4), float(number))).tolist())


def children():
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(2))"], check=True)
    os.execv(sys.executable, [sys.executable, __file__, "lbfgs"])


def binary_output():
    os.write(1, bytes(range(256)) * 100)


def crash():
    torch.manual_seed(0)
    steps(nn.Linear(2, 2), lambda m: m(torch.ones(1, 2)).sum(), 2)
    os.abort()


def hooks_taken_away():
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    steps(model, lambda m: m(torch.ones(1, 2)).sum(), 1)
    sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks.clear()
    sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks.clear()
    steps(model, lambda m: m(torch.ones(1, 2)).sum(), 1)


class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.cpu, torch.Tensor.contiguous, torch.Tensor.detach):
            raise RuntimeError("it does not say")
        return super().__torch_function__(func, types, args, kwargs or {})


def unreadable():
    torch.manual_seed(0)
    nn.Identity()(torch.ones(2).as_subclass(Odd))
    steps(nn.Linear(2, 2), lambda m: m(torch.ones(1, 2)).sum(), 1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
