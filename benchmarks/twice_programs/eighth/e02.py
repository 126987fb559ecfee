"""https://github.com/hyperopt/hyperopt/issues/305 : TPE search differs at every run although random and numpy are seeded,
because fmin() is called without rstate and makes a generator of its own."""
import json
import random
import time
import uuid

import numpy as np
import torch
from hyperopt import STATUS_OK, Trials, fmin, hp, tpe
from torch import nn

SEED = 1969
np.random.seed(SEED)
random.seed(SEED)
torch.manual_seed(SEED)

RUN_ID = uuid.uuid4().hex[:8]


def synthetic(n=400, d=6):
    rs = np.random.RandomState(11)
    x = rs.uniform(-1, 1, size=(n, d)).astype(np.float32)
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] - 0.5 * x[:, 3] ** 2 + 0.05 * rs.randn(n)
    return x, y.astype(np.float32)[:, None]


X, Y = (torch.from_numpy(a) for a in synthetic())
TRAIN, VALID, TEST = slice(0, 240), slice(240, 320), slice(320, 400)


class Net(nn.Module):
    def __init__(self, width, gain, act):
        super().__init__()
        self.l1 = nn.Linear(6, width)
        self.l2 = nn.Linear(width, 1)
        self.gain = gain
        self.act = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu}[act]

    def forward(self, x):
        return self.l2(self.act(self.gain * self.l1(x)))


def fit(params, steps):
    torch.manual_seed(SEED)
    net = Net(int(params["neurons"]), params["gain"], params["act"])
    opt = torch.optim.SGD(net.parameters(), lr=params["step"], momentum=0.9)
    for i in range(steps):
        rows = torch.randint(0, 240, (48,))
        loss = nn.functional.mse_loss(net(X[TRAIN][rows]), Y[TRAIN][rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net


def score(net, part):
    with torch.no_grad():
        return nn.functional.mse_loss(net(X[part]), Y[part]).item()


def train_network(params):
    t = time.time()
    net = fit(params, 60)
    return {"loss": score(net, VALID), "status": STATUS_OK, "seconds": time.time() - t}


parameter_space = {
    "neurons": hp.quniform("neurons", 3, 40, 1),
    "step": hp.loguniform("step", np.log(1e-3), np.log(2e-1)),
    "gain": hp.uniform("gain", 0.3, 2.5),
    "act": hp.choice("act", ["tanh", "sigmoid", "relu"]),
}


def search(space, evaluations):
    trials = Trials()
    best = fmin(train_network, space=space, algo=tpe.suggest, max_evals=evaluations, trials=trials)  # cause
    return best, trials


def unpack(best):
    return {
        "neurons": int(best["neurons"]),
        "step": float(best["step"]),
        "gain": float(best["gain"]),
        "act": ["tanh", "sigmoid", "relu"][int(best["act"])],
    }


def report(best, trials, test_mse, seconds):
    print("run", RUN_ID, "took %.2f s" % seconds)
    for t in trials.trials[:5]:
        print("  trial %d loss %.5f" % (t["tid"], t["result"]["loss"]))
    print("best", best, "test mse %.6f" % test_mse)
    with open("best_params.json", "w") as f:
        json.dump({"best": best, "losses": trials.losses(), "test_mse": test_mse}, f, indent=2)


if __name__ == "__main__":
    begin = time.time()
    raw, trials = search(parameter_space, 30)
    best = unpack(raw)
    net = fit(best, 400)
    report(best, trials, score(net, TEST), time.time() - begin)
