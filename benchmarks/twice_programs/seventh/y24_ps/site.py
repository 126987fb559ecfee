import socket

import torch
from torch import nn

from .wire import receive, send


def build_model():
    return nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 3))


def make_data(site, n):
    g = torch.Generator().manual_seed(1000 + site)
    shared = torch.Generator().manual_seed(1)
    centres = 1.3 * torch.randn(3, 10, generator=shared)
    y = torch.randint(0, 3, (n,), generator=g)
    return centres[y] + torch.randn(n, 10, generator=g) + 0.2 * site, y


def run_site(site, port, seed):
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(seed + site)
    x, y = make_data(site, 600)
    model = build_model()
    sock = socket.create_connection(("127.0.0.1", port))
    send(sock, site=site)
    while True:
        job = receive(sock)
        if job is None or job["round"] < 0:
            break
        model.load_state_dict(job["weights"])
        idx = torch.randint(0, len(y), (256,), generator=g)
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        grads = torch.autograd.grad(loss, list(model.parameters()))
        send(sock, site=site, grads=list(grads), loss=loss.item())
    sock.close()
