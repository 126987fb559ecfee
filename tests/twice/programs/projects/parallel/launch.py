import argparse
import socket

import torch.multiprocessing as mp
import worker


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--seeds", choices=["rank", "drawn", "clock"], default="rank")
    options = parser.parse_args()
    mp.spawn(worker.work, (options, free_port()), options.ranks)


if __name__ == "__main__":
    main()
