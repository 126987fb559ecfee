"""https://github.com/NVIDIA/NVFlare/pull/4928 - run-to-run variance though every process is seeded: the server aggregates
the sites' updates in the order in which they arrive over the network."""
import json
import multiprocessing as mp
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from y24_ps.server import ParameterServer
from y24_ps.site import build_model, make_data, run_site

SEED, SITES, ROUNDS = 21, 2, 100


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    server = ParameterServer(build_model(), SITES, lr=3e-3)
    print(f"server listens on port {server.port}")
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=run_site, args=(s, server.port, SEED)) for s in range(SITES)]
    for p in procs:
        p.start()
    server.accept()
    t0 = time.time()
    for r in range(ROUNDS):
        server.round(r)
        if r % 25 == 24:
            print(f"round {r + 1}: loss {server.log[-1]:.5f}, {(time.time() - t0) / (r + 1) * 1000:.1f} ms a round")
    server.close()
    for p in procs:
        p.join()
    x, y = make_data(SITES + 3, 800)
    with torch.no_grad():
        out = server.model(x)
    result = {"loss": server.log, "test_loss": torch.nn.functional.cross_entropy(out, y).item(),
              "accuracy": (out.argmax(1) == y).float().mean().item()}
    Path("federation.json").write_text(json.dumps(result))
    print("test loss", result["test_loss"], "accuracy", result["accuracy"])


if __name__ == "__main__":
    main()
