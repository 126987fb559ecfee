"""An image with a few locked programs, as `check` sees it once something was added to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reprobuild.layers.image_documents import file_manifest
from reprobuild.oci.tar_writer import Record
from reprobuild.verify.check import Checked, check_tree
from support.trees import SITE, image

LOCKED = [
    Record(f"{SITE}/torch", "dir", 0o755, "-"),
    Record("opt/venv/bin/python3", "link", 0o777, "/usr/bin/python3.11"),
    Record("usr/bin/python3.11", "file", 0o755, "p"),
    Record("usr/bin/bash", "file", 0o755, "b"),
    Record("usr/bin/perl", "file", 0o755, "l"),
    Record("opt/venv/bin/torchrun", "file", 0o755, "t"),
]


def checked(*more: Record, env: dict[str, str | None] | None = None, **config: Any) -> Checked:
    tree = image(*LOCKED, *more, env=env)
    own = tree.kept["opt/reprobuild/manifest.tsv"] + file_manifest(LOCKED)
    kept = {**tree.kept, "opt/reprobuild/manifest.tsv": own}
    return check_tree(replace(tree, config={**tree.config, **config}, kept=kept), "x", own)


def found(*more: Record, env: dict[str, str | None] | None = None, **config: Any) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in checked(*more, env=env, **config).differences]
