"""Times that a library's own code measures and tells: no Python has measured them.

They are found in what the library says, by the words that its source writes them with.
"""

from __future__ import annotations

import contextlib
import functools
import os

from . import drawn_names, measured
from .watching import Watcher

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 32 << 20
"""Of a file of CatBoost's."""


def _note(kind: str, value: Any, where: str) -> None:
    """Keep a time, by what it is in: the recorder's own files are elsewhere in each run."""
    measured.note_at((where, 0, kind), kind, value, where, 0)


def _lightgbm(module: Any) -> None:
    """How long it tried which way of making histograms is faster."""
    import re  # noqa: PLC0415 -- lightgbm has imported it

    inner, told = module._log_native, re.compile(r"overhead of testing was ([\d.]+) seconds")

    @functools.wraps(inner)
    def log(message: str) -> None:
        for number in told.findall(message):
            _note("text", number, "lightgbm")
        inner(message)

    module._log_native = log


class _Stream:
    """A stream that CatBoost writes to."""

    def __init__(self, inner: Any) -> None:
        import re  # noqa: PLC0415 -- catboost has imported it

        self._inner = inner
        self._parts = re.compile(r"(\d+(?:\.\d+)?)(us|ms|[smhd])\b")
        self._time = re.compile(rf"\t(?:total|remaining): (?:{self._parts.pattern} ?)+")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: Any) -> Any:
        """Note the times in a text, and write it."""
        if type(text) is str:
            for time in self._time.finditer(text):
                parts = self._parts.findall(time[0])
                for number, _ in parts:
                    _note("text", number, "catboost")
                _note("value", sum(float(number) * _SECONDS[unit] for number, unit in parts), "catboost")
        return self._inner.write(text)


_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _catboost(module: Any) -> None:
    """Follow the times in its log and in the files of a training, and the id that it draws for a model.

    https://github.com/catboost/catboost/blob/master/catboost/libs/logging/profile_info.cpp
    """
    inner = module._set_logger
    kept: dict[int, _Stream] = {}  # the library keeps an address of its streams, and no reference

    @functools.wraps(inner)
    def set_logger(out: Any, error: Any) -> Any:
        return inner(kept.setdefault(id(out), _Stream(out)), error)

    module._set_logger = set_logger
    train = module.CatBoost._train

    @functools.wraps(train)
    def trained(self: Any, *arguments: Any, **named: Any) -> Any:
        result = train(self, *arguments, **named)
        # Where a file is missing or has another form, nothing is known of it: all that it holds is a result.
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            drawn_names.add("drawn names", self.get_metadata()["model_guid"])
        folder = self.get_params().get("train_dir") or "catboost_info"
        for note in (_names, _read):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                note(folder)
        return result

    module.CatBoost._train = trained


def _names(folder: str) -> None:
    """Note the names of temporary files that a training leaves."""
    for name in sorted(os.listdir(f"{folder}/tmp")):  # noqa: PTH208, S108 -- pathlib is slow to import; it is in that folder
        drawn_names.add("drawn names", name.rpartition(".")[0].rpartition(".")[2])


def _read(folder: str) -> None:
    """Note the times in the files of a training."""
    import json  # noqa: PLC0415 -- catboost has imported it

    with open(f"{folder}/time_left.tsv") as file:  # noqa: PTH123 -- pathlib is slow to import
        for line in file.read(MOST_BYTES).splitlines()[1:]:
            for at, number in enumerate(line.split("\t")[1:]):
                _note("text", number, f"time_left.tsv {at}")
    with open(f"{folder}/catboost_training.json") as file:  # noqa: PTH123 -- as above
        for each in json.loads(file.read(MOST_BYTES))["iterations"]:
            for name in ("passed_time", "remaining_time"):
                _note("value", float(each[name]), name)


def install(watcher: Watcher) -> None:
    """Follow what is there, and what is imported later."""
    watcher.after("lightgbm.basic", _lightgbm)
    watcher.after("catboost.core", _catboost)
