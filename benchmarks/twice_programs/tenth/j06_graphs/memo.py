"""Results kept on disk, one JSON file per graph and set of parameters."""
import json
import os


class Memo:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.hits = 0

    def path(self, tag, params):
        text = "_".join(f"{k}{v}" for k, v in sorted(params.items()))
        return os.path.join(self.folder, f"{tag}__{text}.json")

    def get(self, tag, params):
        path = self.path(tag, params)
        if os.path.exists(path):
            self.hits += 1
            with open(path) as fh:
                return json.load(fh)
        return None

    def put(self, tag, params, value):
        with open(self.path(tag, params), "w") as fh:
            json.dump(value, fh)
