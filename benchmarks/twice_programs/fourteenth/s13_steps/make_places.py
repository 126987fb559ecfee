import json
import random
import sys
from pathlib import Path

folder, files, places = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(90)
FIRST = ["north", "south", "old", "new", "saint", "lake", "port", "upper", "lower", "great"]
SECOND = ["bay", "town", "hill", "ford", "haven", "bridge", "field", "lake", "wood", "market"]

number = 1000
for k in range(files):
    features = []
    for _ in range(places):
        number += rng.randint(1, 9)
        features.append({
            "id": number,
            "properties": {
                "name": f"{rng.choice(FIRST)} {rng.choice(SECOND)}",
                "population": rng.randint(1, 4) * 100,
                "lat": round(rng.uniform(-60, 60), 4),
                "lon": round(rng.uniform(-180, 180), 4),
            },
        })
    (folder / f"part-{k:02d}.geojson").write_text(json.dumps({"features": features}))
