"""Node classification after PyG's examples: processed data on disk, one line an epoch, the median time of an epoch by torch."""

import os.path as osp
import time

import torch
import torch.nn.functional as F
from torch_geometric import seed_everything
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.logging import init_wandb, log
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import NormalizeFeatures, RandomNodeSplit


class Blocks(InMemoryDataset):
    """A graph with a few communities."""

    def __init__(self, root, transform=None):
        super().__init__(root, transform)
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self):
        return ["data.pt"]

    def process(self):
        g = torch.Generator().manual_seed(12)
        y = torch.arange(120) % 4
        p = torch.where(y[:, None] == y[None], 0.2, 0.02)
        edges = (torch.rand(120, 120, generator=g) < p).triu(1)
        edges = (edges | edges.T).nonzero().T
        x = F.one_hot(y, 4).float().repeat(1, 4) + 0.8 * torch.rand(120, 16, generator=g)
        data = Data(x=x, edge_index=edges.contiguous(), y=y)
        torch.manual_seed(1)
        self.save([RandomNodeSplit(num_val=20, num_test=40)(data)], self.processed_paths[0])


class GCN(torch.nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.conv1 = GCNConv(i, h, cached=True)
        self.conv2 = GCNConv(h, o, cached=True)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


seed_everything(2)
init_wandb(name="GCN-Blocks", lr=0.02, epochs=15, hidden_channels=8, device="cpu")
dataset = Blocks(osp.join("data", "Blocks"), NormalizeFeatures())
data = dataset[0]
print(dataset, data)
model = GCN(dataset.num_features, 8, dataset.num_classes)
optimizer = torch.optim.Adam([{"params": model.conv1.parameters(), "weight_decay": 5e-4}, {"params": model.conv2.parameters(), "weight_decay": 0}], lr=0.02)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    return [int((pred[m] == data.y[m]).sum()) / int(m.sum()) for m in (data.train_mask, data.val_mask, data.test_mask)]


best_val_acc = test_acc = 0
times = []
for epoch in range(1, 16):
    start = time.time()
    loss = train()
    train_acc, val_acc, tmp_test_acc = test()
    if val_acc > best_val_acc:
        best_val_acc, test_acc = val_acc, tmp_test_acc
    log(Epoch=epoch, Loss=loss, Train=train_acc, Val=val_acc, Test=test_acc)
    times.append(time.time() - start)
print(f"Median time per epoch: {torch.tensor(times).median():.4f}s")
print(f"Mean time per epoch: {sum(times) / len(times):.4f}s, Std: {torch.tensor(times).std():.4f}s")
torch.save(model.state_dict(), "gcn.pt")
