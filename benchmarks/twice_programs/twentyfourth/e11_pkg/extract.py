"""Print the sessions found in one access log, one line for each."""
import os
import sys


def sessions(path, gap=90):
    """Group the requests of a client that are close in time."""
    host = os.path.splitext(os.path.basename(path))[0]
    running, done = {}, []
    with open(path) as handle:
        for line in handle:
            t, client, page, code, size = line.split()
            t, code, size = int(t), int(code), int(size)
            entry = running.get(client)
            if entry is None or t - entry["last"] > gap:
                if entry is not None:
                    done.append(entry)
                entry = {"host": host, "client": client, "first": t, "hits": 0, "bytes": 0, "errors": 0}
                running[client] = entry
            entry["last"] = t
            entry["hits"] += 1
            entry["bytes"] += size
            entry["errors"] += code >= 500
    done.extend(running.values())
    return sorted(done, key=lambda e: (e["first"], e["client"]))


def main():
    found = sessions(sys.argv[1])
    for e in found:
        print("%s\t%s\t%d\t%d\t%d\t%d\t%d" % (e["host"], e["client"], e["first"], e["last"],
                                              e["hits"], e["bytes"], e["errors"]))


if __name__ == "__main__":
    main()
