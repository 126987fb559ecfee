"""Group the hits of a search to incidents.

A hit joins the open incident of its kind if that is not too long ago, else it
opens a new one.  The incident keeps the hit by which it was opened.
"""
import argparse
import json


def parse(line):
    path, number, text = line.rstrip("\n").split(":", 2)
    stamp, node, message = text.split(" ", 2)
    return {"path": path, "line": int(number), "time": int(stamp), "node": node, "message": message}


def kind_of(message):
    for word in ("timeout", "refused", "corrupt", "memory"):
        if word in message:
            return word
    return "other"


class Grouper:
    def __init__(self, window):
        self.window = window
        self.open = {}
        self.incidents = []

    def add(self, hit):
        kind = kind_of(hit["message"])
        incident = self.open.get(kind)
        if incident is None or abs(hit["time"] - incident["last"]) > self.window:
            incident = {
                "id": len(self.incidents) + 1,
                "kind": kind,
                "opened_by": f"{hit['node']}:{hit['line']}",
                "first": hit["time"],
                "last": hit["time"],
                "hits": 0,
                "nodes": [],
            }
            self.incidents.append(incident)
            self.open[kind] = incident
        incident["hits"] += 1
        incident["first"] = min(incident["first"], hit["time"])
        incident["last"] = max(incident["last"], hit["time"])
        if hit["node"] not in incident["nodes"]:
            incident["nodes"].append(hit["node"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hits", required=True)
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    grouper = Grouper(args.window)
    with open(args.hits) as handle:
        for line in handle:
            grouper.add(parse(line))
    with open(args.out, "w") as handle:
        json.dump(grouper.incidents, handle, indent=1)
    counts = {}
    for incident in grouper.incidents:
        counts[incident["kind"]] = counts.get(incident["kind"], 0) + 1
    for kind, count in sorted(counts.items()):
        print(f"{kind}: {count} incidents")
    for incident in sorted(grouper.incidents, key=lambda i: (-i["hits"], i["id"]))[:5]:
        print(
            f"#{incident['id']} {incident['kind']} opened by {incident['opened_by']} "
            f"hits={incident['hits']} nodes={len(incident['nodes'])}"
        )


if __name__ == "__main__":
    main()
