"""The command ``verify``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import DifferenceError, EvidenceError, SelfTestError
from ..host.console import first_of, one_line
from ..host.host import Host
from ..host.machine import architecture
from ..lock.model import Lock
from ..oci.registry.referrers import Unread, attach
from ..pipeline.steps import lock_to_build, rebuild, selftest_image
from ..selftest.agreement import compare as compare_reports
from ..selftest.run import Gpu
from ..selftest.summary import coverage, tally, unproven, untested_gpu
from ..selftest.summary import facts as facts_of
from ..verify.evidence.document_store import keep_vote
from ..verify.evidence.judgement import Judgement
from ..verify.evidence.keys import CommandSigner, read_public_key
from ..verify.evidence.policy import Policy, read_policy
from ..verify.evidence.signatures import read_document, sign
from ..verify.evidence.statements import rebuilt
from ..verify.find import find_pulled
from ..verify.find_evidence import Evidenced, find_evidenced, verify_layers
from ..verify.rebuilt import compare_rebuilt
from ..verify.required import judge_image, refuse
from . import complete
from .evidence_options import attachments, key_option, sign_options, signer_of
from .output import as_json, emit, gpu, table

if TYPE_CHECKING:
    from securesystemslib.signer import Key, Signer

Level = Literal["evidence", "rebuild", "retest"]

_SHOWN = 20
"""Differences that are printed."""


@click.command()
@click.argument("image", shell_complete=complete.images_or_files)
@key_option("Public key that must have signed the evidence; may be repeated: any of them. Narrows a policy.")
@click.option(
    "--policy", type=click.Path(path_type=Path), metavar="FILE", help="What the evidence must say (TOML)."
)
@click.option(
    "--evidence",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Evidence in a file, one document a line; may be repeated.",
)
@click.option(
    "--level",
    type=click.Choice(["evidence", "rebuild", "retest"]),
    default="evidence",
    show_default=True,
    help="Judge the evidence; or also rebuild the image; or also run its self-test here.",
)
@click.option(
    "--builders",
    type=click.IntRange(1, 64),
    metavar="N",
    help="That so many others must have rebuilt it to these bytes, each by a --builder-key.",
)
@click.option(
    "--builder-key",
    "builder_keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Public key of a builder; may be repeated.",
)
@sign_options
@gpu
@as_json
@click.pass_obj
def verify(
    host: Host,
    image: str,
    *,
    keys: tuple[Path, ...],
    policy: Path | None,
    files: tuple[Path, ...],
    level: Level,
    builders: int | None,
    builder_keys: tuple[Path, ...],
    sign_key: Path | None,
    sign_command: str | None,
    sign_public: Path | None,
    gpu: Gpu,
    json_: bool,
) -> None:
    """Verify the evidence on an image: who signed it, and what it says.

    IMAGE is one of an engine, an archive, or REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST. `--level rebuild`
    builds it again from the lock in it, with no layer from a cache, and compares; with `--sign-key` the
    result is signed as evidence too. `--level retest` runs the self-test here and compares its results with
    those of the evidence. Exit status 17 if the evidence does not suffice, 13 if the rebuilt image differs,
    9 if the self-test fails or gives other results.

    \b
    reprobuild verify registry.example/team/torch:1 --key team.pub
    reprobuild verify torch.tar --policy policy.toml
    reprobuild verify torch.tar --key team.pub --builders 1 --builder-key ci.pub
    reprobuild verify reprobuild/torch:2.4.1-cu121-py311 --level rebuild \\
        --sign-key me.pem
    """
    wanted = Policy() if policy is None else read_policy(policy)
    wanted = wanted.narrowed([*map(read_public_key, keys)])
    wanted = wanted.with_builders(builders or 0, [*map(read_public_key, builder_keys)])
    signer = signer_of(sign_key, sign_command, sign_public, host)
    if signer is not None and level != "rebuild":
        raise click.UsageError("--sign-key signs the result of --level rebuild")
    found = find_evidenced(image, files, host)
    judged = judge_image(found, wanted, host)
    facts: dict[str, Any] = {
        "image": image,
        "digest": str(found.subject),
        "level": level,
        "refused": list(judged.refused),
        "ignored": list(judged.ignored),
        "signed_by": {kind: sorted(signers) for kind, signers in judged.signers.items()},
        "builders": sorted(judged.builders),
        "test": None if judged.report is None else facts_of(judged.report),
        "not_asked": [
            *_unasked(wanted),
            *(name for at, name in _LEVELS.items() if at != level),
            *(f"the image for {platform}" for platform in found.platforms),
        ],
        "unknown": list(judged.unknown),
    }
    rows = [("image", image), ("digest", str(found.subject)), *_evidence(judged, wanted, level)]
    if found.platforms:
        rows.insert(2, ("platform", f"linux/{architecture()}; not judged: {first_of(found.platforms)}"))
    differences: list[str] = []
    if judged.good and level == "rebuild":
        differences, how = _rebuilt(found, host)
        rows.append(("rebuilt", how))
        facts["rebuilt"] = how
        facts["differences"] = differences
        if not differences and how == _IDENTICAL:
            rows += _voted(found, signer, host)
    if judged.good and level == "retest":
        rows.append(("retested", text := _retested(found, judged, gpu, host)))
        facts["retested"] = text
    if json_:
        emit(facts)
    else:
        table("", rows)
        for line in judged.ignored:
            click.echo(one_line(f"does not count: {line}"))
        for each in differences[:_SHOWN]:
            click.echo(one_line(each))
    refuse(image, found, judged)
    if differences:
        raise DifferenceError(
            f"{image} differs in {len(differences)} places from the image that its lock gives here",
            hint="`reprobuild compare` shows two images file by file",
        )


_LEVELS: Mapping[Level, str] = {"rebuild": "a rebuild", "retest": "a retest"}


def _unasked(policy: Policy) -> list[str]:
    """Return what of an image's evidence a policy does not ask for."""
    asked = {
        "age": policy.max_age is not None,
        "certain checks": policy.checks,
        "a GPU": policy.gpu is not None,
        "a profile": policy.profile is not None,
        "other builders": policy.builders,
    }
    return [name for name, wanted in asked.items() if not wanted]


def _evidence(judged: Judgement, policy: Policy, level: Level) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for kind, statement in judged.counted.items():
        signers = ", ".join(sorted(key[:12] for key in judged.signers[kind]))
        made = "" if statement.made is None else f" of {statement.made:%Y-%m-%d %H:%M} UTC"
        by = f"signed by {signers}" if signers else "signatures were not asked for: no key was given"
        rows.append((kind, f"counts{made}; {by}"))
    if (report := judged.report) is not None:
        machine = report.scope.get("cpu") or {}
        rows.append(("tested", f"{tally(report)}, on {machine.get('model', 'a CPU')}"))
        rows += [*unproven(report), *untested_gpu(report)]
    if judged.builders or policy.builders:
        same = judged.builders & {key.keyid for key in policy.keys}
        own = f"; and {len(same)} that may sign the evidence" if same else ""
        rows.append(("rebuilders", f"{len(judged.builders - same) or 'no'} other{own}"))
    rows += [("unknown", text) for text in judged.unknown]
    unasked = [f"{', '.join(names)}: --policy"] if (names := _unasked(policy)) else []
    others = [name for at, name in _LEVELS.items() if at != level]
    unasked.append(f"{' or '.join(others)}: --level")
    rows.append(("not asked", "; ".join(unasked)))
    good = (
        "the evidence suffices"
        if policy.keys
        else "the word of whoever wrote it, since no key was given: --key asks who signed it"
    )
    covers = "" if report is None else f" ({coverage(report)})"
    return [*rows, ("verdict", "refused" if judged.refused else good + covers)]


_IDENTICAL = "identical: the same bytes"


def _rebuilt(found: Evidenced, host: Host) -> tuple[list[str], str]:
    """Rebuild an image; return the differences, and a summary."""
    lock = _lock_of(found)
    ours = lock_to_build(lock, host)
    if ours.own_files != lock.own_files:
        raise EvidenceError(
            f"{found.name} was made by reprobuild {lock.own_files}, and this is {ours.own_files}, which"
            " adds other files of its own, so a rebuild has another digest",
            hint="rebuild it with the release that made it",
        )
    with rebuild(lock, host) as (digest, images):
        config = str(images.manifest(digest)["config"]["digest"])
        if digest in found.subject.digests:
            return [], _IDENTICAL
        if config in found.subject.digests:
            verify_layers(found, host)
            return [], "the same configuration, and so files; the layers are compressed in another way"
        return compare_rebuilt(found, digest, images, host)


def _voted(found: Evidenced, signer: Signer | CommandSigner | None, host: Host) -> list[tuple[str, str]]:
    """Sign that a rebuild gave the same bytes, and attach that statement to the image or keep it."""
    if signer is None:
        return []
    key = signer.public_key
    if any(_is_vote_of(document, key, found) for document in found.documents.values()):
        return [("vote", f"{key.keyid[:12]} has signed one already")]
    text = rebuilt(found.subject, _lock_of(found).digest, datetime.now(UTC))
    document = sign(text, signer)
    if found.registry is not None:
        manifest = found.registry.read_manifest(found.subject.manifest)
        attach(found.registry, manifest, attachments({"rebuild": document}))
        return [("vote", f"attached to {found.name}")]
    path = keep_vote(host.home, found.subject.manifest, document, key.keyid)
    return [("vote", f"kept in {path}; `push` sends it along")]


def _is_vote_of(document: bytes | Unread, key: Key, found: Evidenced) -> bool:
    try:
        read = read_document(document, [key])
    except EvidenceError:
        return False
    return (
        bool(read.signers)
        and read.statement.kind == "rebuild"
        and found.subject.manifest in read.statement.subjects
    )


def _retested(found: Evidenced, judged: Judgement, gpu: Gpu, host: Host) -> str:
    """Run the self-test here and compare its results with those that were reported."""
    kept = found.kept or find_pulled(found.name, found.subject.digests, host)
    if kept is None:
        raise EvidenceError(
            f"{found.name} cannot be tested: no engine here has it",
            hint="`podman pull` or `docker pull` it, and verify it again by the same name",
        )
    assert judged.report is not None
    report = selftest_image(kept.engine, kept.image.digest, gpu, host, mode="battery")
    if not report.passed:
        raise SelfTestError(f"{found.name} failed its self-test here:\n" + "\n".join(report.failures()))
    found_agreements = compare_reports(judged.report, report)
    differs = [each.name for each in found_agreements if each.state == "differs"]
    if differs:
        raise SelfTestError(
            f"{found.name} passed its self-test here, but gives other results than were reported from a"
            f" machine of the same kind: {', '.join(differs)}"
        )
    equal = sum(each.state == "equal" for each in found_agreements)
    other = sum(each.state == "not comparable" for each in found_agreements)
    return f"passed; {equal} results equal those reported, {other} belong to another kind of machine"


def _lock_of(found: Evidenced) -> Lock:
    if found.lock is None:
        raise EvidenceError(
            f"{found.name} carries no lock in its uppermost layer, so it cannot be rebuilt",
            hint="verify the image of reprobuild that it starts FROM",
        )
    return found.lock
