"""Split the dataset into training and test set."""
import argparse
import json

import numpy as np


def write(path, content):
    with open(path, "w") as handle:
        json.dump(content, handle, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--in-file", type=str, required=True)
    parser.add_argument("--ratio", type=float, default=0.9)
    args = parser.parse_args()

    with open(args.in_file) as handle:
        content = json.load(handle)

    perm = np.random.permutation(len(content))  # cause
    content = [content[i] for i in perm]
    split = int(args.ratio * len(content))
    train_set, test_set = content[:split], content[split:]

    print(f"#train: {len(train_set)}, #test: {len(test_set)}")
    write(args.in_file.replace(".json", "_train.json"), train_set)
    write(args.in_file.replace(".json", "_test.json"), test_set)
