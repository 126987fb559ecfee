import json
import sys


def simplify(feature):
    p = feature["properties"]
    ring = []
    for step in range(400):
        ring.append((p["lat"] + step * 1e-4, p["lon"] - step * 1e-4))
    area = 0.0
    for (x1, y1), (x2, y2) in zip(ring, ring[1:]):
        area += x1 * y2 - x2 * y1
    return {"id": feature["id"], "name": p["name"], "population": p["population"],
            "lat": p["lat"], "lon": p["lon"], "area": round(area, 6)}


with open(sys.argv[1]) as fh:
    data = json.load(fh)
for feature in data["features"]:
    sys.stdout.write(json.dumps(simplify(feature)) + "\n")
    sys.stdout.flush()
