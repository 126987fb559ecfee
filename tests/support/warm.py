"""A Python that has torch imported and forks itself for each program, whose runs then start at once.

Run as a program with the modules to import, it reads requests from standard input, a line of JSON each, and
answers with the exit status of the program. What it forks is as a fresh process is: generators that the
system seeds are seeded anew, the recorder starts before the program, and the process ends as Python ends.
Only where things lie in memory is the same in each: a program that makes something of addresses needs a
process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

IMPORTED = ("numpy", "torch", "torch._dynamo", "torch.utils.data", "torch.utils.checkpoint")
"""The last three are imported by the first optimizer, loader and checkpoint."""


class WarmPython:
    """The server and the way to it; it ends with its standard input."""

    def __init__(self, python: str, env: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._server = subprocess.Popen(
            # Without a name of its own its text is no part of a program.
            [python, "-c", Path(__file__).read_text(), *IMPORTED],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], out: Path, err: Path) -> int:
        """Run a program to its end and return its exit status as `subprocess` has it."""
        request = {"argv": [*argv], "cwd": str(cwd), "env": {**env}, "out": str(out), "err": str(err)}
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._lock:
            self._server.stdin.write(json.dumps(request).encode() + b"\n")
            self._server.stdin.flush()
            return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the server."""
        self._server.communicate()


def _serve() -> dict[str, Any] | None:
    """Answer requests; in a forked child return its request, at the end None."""
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            request: dict[str, Any] = json.loads(line)
            return request
        _, status = os.waitpid(child, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))
    return None


def _become(request: dict[str, Any]) -> ModuleType:
    """Make this process the one that a program starts in, up to its first line."""
    os.chdir(request["cwd"])
    for descriptor, path in ((1, request["out"]), (2, request["err"])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.environ.clear()
    os.environ.update(request["env"])
    sys.modules["random"].seed()
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].default_generator.seed()
    program = request["argv"][0]
    sys.argv[:] = request["argv"]
    sys.path[0] = str(Path(program).parent)
    sys.path[1:1] = request["env"]["PYTHONPATH"].split(":")
    module = ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    importlib.import_module("reprobuild_twice")
    return module


def _main() -> None:
    for name in sys.argv[1:]:
        importlib.import_module(name)
    request = _serve()
    if request is not None:
        module = _become(request)
        text = Path(request["argv"][0]).read_bytes()
        exec(compile(text, request["argv"][0], "exec"), module.__dict__)


if __name__ == "__main__":
    _main()
