"""Content addressed store for the raw measurement records."""
import gzip
import hashlib
import json
import os


class BlobStore:
    def __init__(self, root, level=6):
        self.root = root
        self.level = level
        os.makedirs(root, exist_ok=True)

    def path(self, digest):
        return os.path.join(self.root, digest[:2], digest + ".json.gz")

    def put(self, record):
        payload = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
        packed = gzip.compress(payload, compresslevel=self.level)  # cause
        digest = hashlib.sha256(packed).hexdigest()
        target = self.path(digest)
        if not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target + ".tmp", "wb") as f:
                f.write(packed)
            os.replace(target + ".tmp", target)
        return digest

    def get(self, digest):
        with open(self.path(digest), "rb") as f:
            return json.loads(gzip.decompress(f.read()))

    def size(self):
        return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(self.root) for f in files)
