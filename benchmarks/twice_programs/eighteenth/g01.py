"""Train a small churn classifier, save a checkpoint, score the hold-out customers.

Two steps, each a script of its own as in the notebook this came from:
    g01_pkg/train.py    makes the data, trains, writes lightning_logs/version_0/
    g01_pkg/predict.py  loads the checkpoint and writes predictions.csv

Modelled on: https://github.com/Lightning-AI/pytorch-lightning/issues/5648
"""
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STEPS = ["train.py", "predict.py"]


def main():
    began = time.time()
    for step in STEPS:
        print(f"== {step}", flush=True)
        subprocess.run([sys.executable, str(HERE / "g01_pkg" / step)], check=True)
    print(f"done in {time.time() - began:.1f}s at {time.strftime('%Y-%m-%d %H:%M:%S')}")


if __name__ == "__main__":
    main()
