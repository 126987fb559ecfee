import sys

import torch


def read(name):
    values = []
    with open(name) as listed:
        for path in listed:
            with open(path.strip()) as line:
                values.append(float(line.read()))
    return torch.tensor(values).unsqueeze(1) / 40


torch.manual_seed(0)
train, evaluation = read(sys.argv[1]), read(sys.argv[2])
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in train:
    loss = (model(x) - x.sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("eval", (model(evaluation) - evaluation.sin()).square().mean().item())
