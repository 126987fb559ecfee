"""Precision and recall of calls against the truth."""
import argparse


def load(path):
    table = {}
    with open(path) as handle:
        for line in handle:
            fields = line.rstrip("\n").split("\t")
            table[int(fields[0])] = (fields[1], int(fields[2]))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", required=True)
    parser.add_argument("--calls", required=True)
    parser.add_argument("--label", required=True)
    args = parser.parse_args()
    truth, calls = load(args.truth), load(args.calls)
    found = [site for site in calls if site in truth and truth[site][0] == calls[site][0]]
    exact = sum(1 for site in found if truth[site][1] == calls[site][1])
    precision = len(found) / max(1, len(calls))
    recall = len(found) / len(truth)
    print(
        f"{args.label}: calls={len(calls)} true={len(found)} genotype_ok={exact} "
        f"precision={precision:.5f} recall={recall:.5f}"
    )


if __name__ == "__main__":
    main()
