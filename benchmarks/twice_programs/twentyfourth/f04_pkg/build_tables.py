"""Make the tables of places, regions and distances."""
import argparse
import math
import os
import random

SYLLABLES = "ba den ford ham kirk lo mar ness or pol stad thor ul vik wes".split()


def place_name(rng):
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4))).capitalize()


def make_places(count, rng):
    places = []
    for number in range(count):
        lat = round(rng.uniform(54.5, 71.0), 5)
        lon = round(rng.uniform(4.0, 31.0), 5)
        people = int(rng.paretovariate(1.1) * 120)
        places.append((number, place_name(rng), lat, lon, people))
    return places


def region_of(lat, lon):
    return f"R{int((lat - 54) // 3):02d}{int((lon - 4) // 5):02d}"


def haversine(a, b):
    la, lo, lb, lp = map(math.radians, (a[2], a[3], b[2], b[3]))
    h = math.sin((lb - la) / 2) ** 2 + math.cos(la) * math.cos(lb) * math.sin((lp - lo) / 2) ** 2
    return 6371.0 * 2 * math.asin(math.sqrt(h))


def write_table(path, header, rows):
    with open(path, "w") as handle:
        handle.write("\t".join(header) + "\n")
        for row in rows:
            handle.write("\t".join(map(str, row)) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", required=True)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    places = make_places(args.places, rng)
    regions = {}
    for place in places:
        regions.setdefault(region_of(place[2], place[3]), []).append(place)
    write_table(os.path.join(args.dir, "places.tsv"), ["id", "name", "lat", "lon", "people"], places)
    rows = [(r, len(p), sum(x[4] for x in p)) for r, p in sorted(regions.items())]
    write_table(os.path.join(args.dir, "regions.tsv"), ["region", "places", "people"], rows)
    big = sorted(places, key=lambda p: (-p[4], p[0]))[:700]
    near = []
    for a in big:
        b = min((x for x in big if x is not a), key=lambda x: haversine(a, x))
        near.append((a[0], b[0], f"{haversine(a, b):.3f}"))
    write_table(os.path.join(args.dir, "nearest.tsv"), ["id", "neighbour", "km"], near)


if __name__ == "__main__":
    main()
