"""MLflow with its tracking database: nested runs with drawn names, system tags, params, metrics with times, artifacts, a search over runs."""

import logging
import os
import tempfile
import time

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["GIT_PYTHON_REFRESH"] = "quiet"
import mlflow
import pandas as pd
import torch
from mlflow.tracking import MlflowClient
from torch import nn

logging.getLogger("mlflow").setLevel(logging.ERROR)
logging.getLogger("alembic").setLevel(logging.ERROR)


def data():
    g = torch.Generator().manual_seed(8)
    x = torch.randn(160, 6, generator=g)
    return x[:128], x[:128].pow(2).sum(1, keepdim=True), x[128:], x[128:].pow(2).sum(1, keepdim=True)


def fit(lr, width, seed=0):
    torch.manual_seed(seed)
    x, y, xv, yv = data()
    model = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 1))
    opt = torch.optim.Adam(model.parameters(), lr)
    for epoch in range(4):
        t = time.time()
        for a, b in zip(x.split(32), y.split(32)):
            loss = nn.functional.mse_loss(model(a), b)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(xv), yv).item()
        mlflow.log_metrics({"train_loss": loss.item(), "val_loss": val, "epoch_seconds": time.time() - t}, step=epoch)
    return model, val


def main():
    mlflow.set_tracking_uri(f"sqlite:///{os.path.abspath('mlflow.db')}")
    if mlflow.get_experiment_by_name("squares") is None:
        mlflow.create_experiment("squares", artifact_location="artifacts")
    mlflow.set_experiment("squares")
    started = time.perf_counter()
    best = None
    with mlflow.start_run() as parent:
        print(f"parent run {parent.info.run_name} ({parent.info.run_id})")
        mlflow.set_tag("host", os.uname().nodename)
        for lr in (0.01, 0.05):
            for width in (4, 8):
                with mlflow.start_run(nested=True) as run:
                    mlflow.log_params({"lr": lr, "width": width})
                    model, val = fit(lr, width)
                    with tempfile.TemporaryDirectory() as tmp:
                        path = os.path.join(tmp, "model.pt")
                        torch.save(model.state_dict(), path)
                        mlflow.log_artifact(path, "model")
                    mlflow.log_dict({"val": val, "finished": time.time()}, "summary.json")
                    print(f"  {run.info.run_name}: lr={lr} width={width} val_loss={val:.5f} artifacts at {run.info.artifact_uri}")
                    if best is None or val < best[0]:
                        best = val, run.info.run_id, run.info.run_name
        mlflow.log_metric("best_val", best[0])
    client = MlflowClient()
    history = client.get_metric_history(best[1], "val_loss")
    print("best", best, [round(m.value, 5) for m in history])
    runs = mlflow.search_runs(order_by=["metrics.val_loss ASC"])
    print(runs[["tags.mlflow.runName", "metrics.val_loss", "params.lr", "params.width", "metrics.epoch_seconds"]].to_string())
    runs.to_csv("runs.csv", index=False)
    frame = pd.DataFrame([{"step": m.step, "val": m.value, "at": pd.Timestamp(m.timestamp, unit="ms")} for m in history])
    frame.to_json("best.json", orient="records", date_format="iso")
    print(f"{len(runs)} runs in {time.perf_counter() - started:.1f}s")


if __name__ == "__main__":
    main()
