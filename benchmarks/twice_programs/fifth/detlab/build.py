import torch

from detlab.samplers import TrainingSampler


class Boxes(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(5)
        self.features = torch.randn(n, 12, generator=g)
        self.boxes = torch.rand(n, 4, generator=g)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, at):
        return {"features": self.features[at], "boxes": self.boxes[at], "id": at}


def build_loader(cfg):
    data = Boxes(cfg["IMAGES"])
    sampler = TrainingSampler(len(data))
    return torch.utils.data.DataLoader(data, sampler=sampler, batch_size=cfg["BATCH"], num_workers=cfg["WORKERS"])
