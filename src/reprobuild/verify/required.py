"""Policy check of an image before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..errors import EvidenceError
from ..host.host import Host
from ..selftest.summary import coverage
from .evidence.judgement import Judgement, judge
from .evidence.policy import Policy, read_policy
from .find_evidence import Evidenced, find_evidenced, verify_layers


def require(image: str, policy: Path, host: Host) -> Evidenced:
    """Return an image that meets a policy. Raises `EvidenceError` with the reasons why one does not."""
    wanted = read_policy(policy)
    if not wanted.keys:
        host.console.warn(f"{policy} names no keys, so evidence that anybody wrote meets it")
    found = find_evidenced(image, (), host)
    judged = judge_image(found, wanted, host)
    refuse(image, found, judged, [f"{line}, so it does not count" for line in judged.ignored])
    for line in judged.unknown:
        host.console.warn(f"{image}: it is not known {line}")
    if judged.report is not None:
        host.console.step(f"{image} meets {policy}: {coverage(judged.report)}")
    return found


def judge_image(found: Evidenced, policy: Policy, host: Host) -> Judgement:
    """Judge the evidence on an image, and verify the layers where it says nothing of their bytes.

    Raises `EvidenceError` where those are not the ones of the configuration.
    """
    judged = judge(found.documents, found.subject, policy, datetime.now(UTC), found.lock)
    if judged.good and judged.by_configuration:
        verify_layers(found, host)
    return judged


def refuse(image: str, found: Evidenced, judged: Judgement, notes: Sequence[str] = ()) -> None:
    """Raise `EvidenceError` unless the evidence on an image suffices."""
    if judged.refused:
        raise EvidenceError(
            f"the evidence on {image} does not suffice: {'; '.join([*judged.refused, *notes])}",
            hint="" if found.documents else _where(found),
        )


def _where(found: Evidenced) -> str:
    """Return where evidence on an image may be that has none."""
    if found.kept is not None and found.kept.engine.kind != "oci":
        return "Docker and Podman keep no evidence: name the image in its registry, or --evidence FILE"
    return "`reprobuild push --sign-key FILE` attaches signed evidence"
