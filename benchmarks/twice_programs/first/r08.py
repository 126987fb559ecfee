# many: train_test_split without random_state, numpy not seeded
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from proj.trainer import Trainer
from proj.models import Net
from proj.data import batches, table

class DataModule:
    def __init__(self, rows):
        self.x, self.y = table(rows)

    def setup(self):
        self.scaler = StandardScaler().fit(self.x)
        x = self.scaler.transform(self.x)
        self.train_x, self.val_x, self.train_y, self.val_y = train_test_split(x, self.y, test_size=0.25)  # cause

torch.manual_seed(0)
data = DataModule(80)
data.setup()
trainer = Trainer(Net(6, 1), "tabular")
trainer.fit(batches(data.train_x, data.train_y))
trainer.evaluate(torch.tensor(data.val_x), torch.tensor(data.val_y))
