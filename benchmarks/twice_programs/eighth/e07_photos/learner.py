import torch
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm


def cnn(classes):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(64, classes),
    )


class Learner:
    def __init__(self, model, train, valid, lr=3e-3, bs=32):
        self.model = model
        self.train = DataLoader(train, bs, shuffle=True)
        self.valid = DataLoader(valid, 128)
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.recorder = []

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total, n = 0.0, 0
            for x, y in tqdm(self.train, desc=f"epoch {epoch}", leave=False):
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(y)
                n += len(y)
            self.recorder.append({"epoch": epoch, "train_loss": total / n, **self.validate()})

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, hit, n = 0.0, 0, 0
        for x, y in self.valid:
            out = self.model(x)
            loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
            hit += (out.argmax(1) == y).sum().item()
            n += len(y)
        return {"valid_loss": loss / n, "accuracy": hit / n}
