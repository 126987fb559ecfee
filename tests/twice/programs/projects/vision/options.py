import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start-method", default=None)
    parser.add_argument("--jitter", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--schedule", choices=["step", "budget"], default="step")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--out", default="runs")
    return parser.parse_args()
