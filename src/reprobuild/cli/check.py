"""The command ``check``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import click

from .. import __version__
from ..errors import DifferenceError, SelfTestError
from ..host.console import one_line
from ..host.host import Host
from ..pipeline.steps import selftest_image
from ..render.labels import LABEL
from ..render.own_files import SITE_FILES
from ..request.image_layout import OWN_FOLDER
from ..selftest.run import Gpu
from ..selftest.summary import summary
from ..verify.check import check_tree, is_kept
from ..verify.compare import Difference
from ..verify.find import find_image, is_file, parent_manifest, tree_in, tree_of, verify_unpacked
from . import complete
from .output import as_json, emit, gpu, table


@click.command()
@click.argument("image", shell_complete=complete.images_or_files)
@gpu
@as_json
@click.pass_obj
def check(host: Host, image: str, *, gpu: Gpu, json_: bool) -> None:
    """Check an image, or one built on it, against the lock in it.

    Checks the locked files and reprobuild's own by their hashes, the settings, that nothing else runs before
    a program does, and that there is one copy of each CUDA library. Where all of that is as locked, it runs
    its own self-test, not the image's, in the engine that has the image; an archive or layout is not run.
    Exit status 13 if something departs from the lock, 9 if the self-test fails.

    \b
    reprobuild check docker:team/app:1
    """
    kept = None if is_file(image) else find_image(image, host)
    tree = tree_of(image, host, keep=is_kept) if kept is None else tree_in(kept, image, host, keep=is_kept)
    parent = parent_manifest(tree, kept, host)
    checked = check_tree(tree, image, parent)
    found, added = checked.differences, checked.added
    report = None
    # What departs from the lock could make a self-test say anything, so it is not asked.
    if kept is not None and not found:
        verify_unpacked(kept, tree)
        start = checked.python_start
        report = selftest_image(kept.engine, kept.image.digest, gpu, host, mode="battery", start=start)
    if json_:
        facts = {"image": image, "tree": tree.digest, "differences": [asdict(each) for each in found]}
        more = {"added": len(added), "beside": checked.beside, "not_read": sorted(tree.unknown)}
        emit({**facts, **more, "not_checked": checked.not_checked, "report": report and report.to_dict()})
    else:
        rows = [("image", image), ("tree", tree.digest), ("files", _count(found, added))]
        reason = "an archive is not run" if kept is None else "the image departs from its lock"
        table(
            "",
            [
                *rows,
                *(summary(report, power=host.console.verbose) if report else [("tested", f"no: {reason}")]),
            ],
        )
        for name, value in checked.beside.items():
            click.echo(one_line(f"{name}: not in the lock, and takes the place of nothing that is: {value}"))
        for name in checked.not_checked:
            click.echo(one_line(f"not checked: {name}"))
        for each in found:
            click.echo(one_line(str(each)))
    if found:
        raise DifferenceError(
            f"{image} departs from its lock in {_places(found)}",
            hint=_hint(found, tree.config.get("Labels") or {}),
        )
    if report is not None and not report.passed:
        names = ", ".join(each.label for each in report.failed)
        raise SelfTestError(f"{image} failed its self-test ({names}):\n" + "\n".join(report.failures()))


def _count(found: list[Difference], added: list[str]) -> str:
    text = f"differ from the lock in {_places(found)}" if found else "as locked"
    return f"{text}, and {len(added)} that it does not name" if added else text


def _places(found: list[Difference]) -> str:
    return f"{len(found)} place{'s' if len(found) > 1 else ''}"


def _hint(found: list[Difference], labels: Mapping[str, str]) -> str:
    made = labels.get(LABEL + "version", "no reprobuild")
    if all(each.kind == "release" for each in found):
        return (
            f"reprobuild's own files in it are as its lock says, but not this reprobuild's ({__version__}): "
            f"reprobuild {made} made it, by its label, and has to check it"
        )
    own = [f for f in found if f.path.startswith(OWN_FOLDER) or f.path.endswith(SITE_FILES)]
    if changed := [each.path for each in own if each.kind != "release"]:
        return (
            f"{', '.join(changed)}: neither this reprobuild's ({__version__}) nor as its lock says: "
            f"changed after reprobuild {made} made the image, or that release recorded no files of its own"
        )
    if any(each.kind in ("runs at start", "shadows") for each in found):
        return "add the package that contains the file to the request, or take the file out of the image"
    return ""
