"""Runs a suite under a line tracer and writes the raw coverage of the process."""
import argparse
import json
import os
import sys
import time
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import geometry  # noqa: E402
import suites  # noqa: E402


class Tracer:
    def __init__(self, filename):
        self.filename = filename
        self.functions = {}

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename != self.filename:
            return None
        entry = self.functions.setdefault(frame.f_code.co_name, {"calls": 0, "lines": {}})
        if event == "call":
            entry["calls"] += 1
        elif event == "line":
            key = str(frame.f_lineno)
            entry["lines"][key] = entry["lines"].get(key, 0) + 1
        return self


def output_path(folder):
    return os.path.join(folder, f"coverage-{uuid.uuid4()}.json")  # cause


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--temp-directory", required=True)
    parser.add_argument("--suite", required=True)
    args = parser.parse_args()
    tracer = Tracer(geometry.__file__)
    started = time.perf_counter()
    sys.settrace(tracer)
    try:
        for _ in range(3):
            getattr(suites, args.suite)()
    finally:
        sys.settrace(None)
    print(f"suite {args.suite} took {time.perf_counter() - started:.2f} s", file=sys.stderr)
    with open(output_path(args.temp_directory), "w") as f:
        json.dump({"suite": args.suite, "functions": tracer.functions}, f, sort_keys=True)


if __name__ == "__main__":
    main()
