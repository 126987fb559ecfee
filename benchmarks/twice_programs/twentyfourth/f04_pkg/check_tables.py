"""Count rows and check that the keys of the tables fit together."""
import argparse
import os


def load(path):
    with open(path) as handle:
        rows = [line.rstrip("\n").split("\t") for line in handle]
    return rows[0], rows[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True)
    args = parser.parse_args()
    ids = set()
    for name in sorted(os.listdir(args.dir)):
        header, rows = load(os.path.join(args.dir, name))
        print(f"{name}: {len(rows)} rows, columns {', '.join(header)}")
        if name == "places.tsv":
            ids = {row[0] for row in rows}
    _, near = load(os.path.join(args.dir, "nearest.tsv"))
    broken = [row for row in near if row[0] not in ids or row[1] not in ids]
    print(f"broken references: {len(broken)}")


if __name__ == "__main__":
    main()
