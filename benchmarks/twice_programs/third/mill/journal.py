"""The log of a run: console, JSON lines, and a progress bar."""
import datetime, json, logging, os, platform, socket, sys, time

class Journal:
    def __init__(self, config):
        self.config, self.began, self.rows = config, time.perf_counter(), []
        self.log = logging.getLogger(config.name)
        self.log.setLevel(logging.INFO)
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter("%(asctime)s | %(levelname)-5s | %(process)d | %(message)s"))
        self.log.addHandler(handler)
        self.log.info("%s on %s, python %s, started %s", config.name, socket.gethostname(), platform.python_version(),
                      datetime.datetime.now().isoformat(timespec="seconds"))

    def row(self, **values):
        self.rows.append({"t": round(time.perf_counter() - self.began, 3), **values})
        self.log.info(" ".join(f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()))

    def bar(self, done, of):
        took = time.perf_counter() - self.began
        print(f"\r{100 * done // of:3d}%|{'#' * (10 * done // of):10s}| {done}/{of} [{took:.1f}s, {done / max(took, 1e-9):.2f}it/s]", end="", file=sys.stderr)

    def close(self, **values):
        self.row(**values)
        with open(self.config.path("journal.jsonl"), "w") as file:
            for row in self.rows:
                file.write(json.dumps(row) + "\n")
        self.log.info("done in %.2fs", time.perf_counter() - self.began)
