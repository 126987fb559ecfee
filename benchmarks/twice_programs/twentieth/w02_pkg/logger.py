"""Console and file log of one run."""
import datetime
import os


class RunLogger:
    def __init__(self, name):
        stamp = datetime.datetime.now().strftime("%Y%m%d%H%M%S")
        self.run_id = f"{name}_{stamp}_{os.getpid()}"
        self._file = open("run.log", "w")
        self._file.write(f"run {self.run_id}\n")

    def info(self, text):
        line = f"{datetime.datetime.now():%H:%M:%S} {text}"
        print(line, flush=True)
        self._file.write(line + "\n")

    def close(self):
        self._file.close()
