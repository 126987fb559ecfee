"""Run as a program: does one run of the sandbox as whoever calls it, told by JSON on the command line.

Writes JSON: the program's status and output, or the error. With a terminal it runs in the foreground instead,
and ends with the program's status.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from reprobuild.errors import ReprobuildError
from reprobuild.host import process, sandbox
from reprobuild.host.removal import remove_tree


def main() -> int:
    told = json.loads(sys.argv[1])
    sandbox.RUNTIMES = (told["runtime"],)
    task = sandbox.Task(
        argv=told["argv"],
        env={"PATH": "/usr/bin", **told.get("env", {})},
        cwd=told.get("cwd", "/"),
        binds=[
            sandbox.Bind(
                source=Path(source), destination=destination, writable=writable, copied=copied == [True]
            )
            for source, destination, writable, *copied in told.get("binds", ())
        ],
        devices=[sandbox.Device(path=path, source=Path(source)) for path, source in told.get("devices", ())],
        writable=told.get("writable", False),
        network=told.get("network", "none"),
        terminal=told.get("terminal", False),
        hooks=told.get("hooks", {}),
        capabilities=told.get("capabilities", ()),
    )
    os.environ.update(told.get("limits", {}))
    bundle = Path(tempfile.mkdtemp(prefix="bundle.", dir=".")).absolute()
    layers = [Path(layer) for layer in told["layers"]]
    try:
        if task.terminal:
            return process.call(sandbox.prepare(bundle, layers, task), cwd=bundle)
        sys.stdout.write(json.dumps(_outcome(bundle, layers, task, told.get("timeout"))))
        return 0
    finally:
        remove_tree(bundle)


def _outcome(bundle: Path, layers: list[Path], task: sandbox.Task, timeout: float | None) -> dict[str, Any]:
    try:
        done = sandbox.run(bundle, layers, task, timeout=timeout)
    except (ReprobuildError, process.ProcessTimeout) as error:
        return {"error": type(error).__name__, "message": str(error), "hint": getattr(error, "hint", "")}
    upper = sorted(p.relative_to(bundle / "upper").as_posix() for p in (bundle / "upper").rglob("*"))
    return {
        "status": done.returncode,
        "out": done.stdout.decode(),
        "err": done.stderr.decode(),
        "upper": upper,
    }


if __name__ == "__main__":
    sys.exit(main())
