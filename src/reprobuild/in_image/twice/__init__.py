"""The recorder of ``reprobuild twice``: writes digests of what a program computes, step by step.

A run of ``twice`` binds this folder into the environment's site-packages, under the name
``reprobuild_twice``, together with a ``.pth`` file that imports it in every Python process. Nothing of it is
in an image. It starts when ``REPROBUILD_TWICE`` names the folder for the records; the program itself is not
changed.

It repeats some of reprobuild_hook.py, such as watching for an import, since it has to work in images of any
release: their hook is that of the day on which they were made, or none.

A program never fails because of the recorder: what goes wrong here is a warning on standard error, and a
mark in the records, which the outside reads as "not compared".
"""

from __future__ import annotations

import os
import sys

from . import settings
from .watching import Watcher, warn

RECORDS = "REPROBUILD_TWICE"
"""The variable that names the folder for the records."""


def _torch(module: object) -> None:
    if os.environ.get("REPROBUILD_TWICE_TIMES"):
        from .timing import install  # noqa: PLC0415 -- a process without torch needs none of it
    elif os.environ.get("REPROBUILD_TWICE_BATCH"):
        from .batch_calls import install  # noqa: PLC0415 -- as above
    else:
        from .steps import install  # noqa: PLC0415

    install(module)


def start() -> None:
    """Watch for the imports that are recorded."""
    watcher = Watcher()
    sys.meta_path.insert(0, watcher)  # before the recorder's own imports, which programs share
    from .evidence import install as keep_evidence  # noqa: PLC0415 -- where records are asked for only

    keep_evidence(watcher)
    if os.environ.get("REPROBUILD_TWICE_VARY") == "listing":
        from .pins import vary_listings  # noqa: PLC0415 -- only where it was asked for

        vary_listings()
    if os.environ.get("REPROBUILD_TWICE_TRACE"):
        from . import handovers, kernels  # noqa: PLC0415 -- only for a trace
        from .sources import Sources, install  # noqa: PLC0415 -- as above

        handovers.install(watcher)
        kernels.install(watcher)
        install(watcher, Sources())
    elif os.environ.get("REPROBUILD_TWICE_PIN"):
        from .pins import install as pin  # noqa: PLC0415 -- only for an experiment

        pin(watcher)
    watcher.after("torch", _torch)
    if os.environ.get("REPROBUILD_TWICE_OPENED"):
        from .opened import install as keep_opened  # noqa: PLC0415 -- only for a receipt

        keep_opened()
    if os.environ.get("REPROBUILD_TWICE_LINES"):
        from .given_values import install as follow_lines  # noqa: PLC0415 -- only to look for a cause

        follow_lines()


if RECORDS not in os.environ:
    settings.restore()
if os.environ.get(RECORDS):
    try:
        start()
    except Exception as error:  # noqa: BLE001 -- a process must never fail to start because of the recorder
        warn("nothing is recorded", error)
