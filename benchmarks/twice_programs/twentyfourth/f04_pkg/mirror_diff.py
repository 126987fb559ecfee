"""List the files that a mirror has to fetch, by the manifest's checksums."""
import argparse
import os


def read_manifest(path):
    with open(path) as handle:
        return dict(reversed(line.split(None, 1)) for line in handle.read().splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--known", required=True)
    args = parser.parse_args()
    wanted = read_manifest(args.manifest)
    known = read_manifest(args.known) if os.path.exists(args.known) else {}
    fetch = [name for name, digest in wanted.items() if known.get(name) != digest]
    print(f"{len(fetch)} of {len(wanted)} files to fetch")
    with open(args.known, "w") as handle:
        for name, digest in wanted.items():
            handle.write(f"{digest}  {name}\n")


if __name__ == "__main__":
    main()
