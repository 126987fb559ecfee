import torch

def chunks(x, y, size):
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    return [(x[i:i + size], y[i:i + size]) for i in range(0, len(x), size)]

def ids(texts, table, length=6):
    return torch.tensor([[table[w] for w in t.split()][:length] for t in texts])
