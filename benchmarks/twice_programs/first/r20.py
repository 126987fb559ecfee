# pytorch#5059: workers by spawn, augmentation by NumPy
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import table

class Jitter:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return x + self.scale * np.random.standard_normal(x.shape).astype("float32")  # cause

class Rows(Dataset):
    def __init__(self, x, y, transform):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.transform(self.x[at]), self.y[at]

def main():
    seed_everything(0)
    loader = DataLoader(Rows(*table(48), Jitter(0.1)), batch_size=8, num_workers=2, multiprocessing_context="spawn")
    Trainer(Net(6, 1), "augment").fit(loader, epochs=1)

if __name__ == "__main__":
    main()
