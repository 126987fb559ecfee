"""Logging as projects do it: times, run id, a history file."""
import json, logging, os, sys, time, uuid
from pathlib import Path

class Run:
    def __init__(self, name, folder="runs"):
        self.name = name
        self.id = uuid.uuid4().hex[:8]
        self.folder = Path(folder) / f"{name}-{self.id}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.started = time.time()
        self.history = []
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
        self.log = logging.getLogger(name)
        self.log.info("run %s pid %d", self.id, os.getpid())

    def step(self, number, **values):
        self.history.append({"step": number, **values})
        took = time.time() - self.started
        self.log.info("step %d %s (%.3fs)", number, " ".join(f"{k}={v:.6f}" for k, v in values.items()), took)

    def finish(self, **values):
        took = time.time() - self.started
        (self.folder / "history.json").write_text(json.dumps(self.history))
        print(f"finished in {took:.2f}s", *(f"{k}={v:.6f}" for k, v in values.items()))
