"""Average the weights of the given checkpoints and score them."""
import json
import sys

import numpy as np

data = np.load(sys.argv[1])
x, y = data["x"][700:], data["y"][700:]
states = [json.load(open(p)) for p in sys.argv[3:]]
decay = 0.8 ** np.arange(len(states))
w = np.average([s["w"] for s in states], axis=0, weights=decay)
rmse = float(np.sqrt(((x @ w - y) ** 2).mean()))
best = states[0]
report = {
    "resumed_from": best["trial"],
    "lr": best["lr"],
    "members": [s["trial"] for s in states],
    "rmse": round(rmse, 8),
}
json.dump(report, open(sys.argv[2], "w"), indent=1)
print("resumed from trial", best["trial"], "rmse", report["rmse"])
