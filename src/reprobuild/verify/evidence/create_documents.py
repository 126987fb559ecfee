"""Create the documents about an image from its last report, and store them in the home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import EvidenceError
from ...host.host import Host
from ...lock.bill import Facts
from ...lock.model import Lock
from ...selftest.last_report import last_report
from .document_store import keep, kept
from .signatures import is_signed, read_document, sign, statement_in
from .statements import Kind, Subject, parts_of, read_statement, statements

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

    from .keys import CommandSigner


def document_image(
    host: Host,
    lock: Lock,
    subject: Subject,
    signer: Signer | CommandSigner | None = None,
    facts: Mapping[str, Facts] | None = None,
) -> Mapping[str, bytes]:
    """Write the documents about an image that has passed; return all that are kept of it, by file.

    What was signed stays, as long as the image has not failed since. Raises `EvidenceError` where there is no
    report of it here.
    """
    found = last_report(str(subject), host.home.folder("reports"))
    if found is None:
        raise EvidenceError(
            f"{str(subject)[:19]} has no report of a self-test here, so there is nothing to attest",
            hint="`reprobuild selftest` tests it",
        )
    report, made = found
    before = kept(host, str(subject))
    documents: dict[Kind, bytes] = {}
    texts = dict(statements(lock, report, subject, made, facts))
    if (lacking := len(lock.python) - len(facts or {})) > 0:
        if (text := _fuller_bill(before.get("sbom.json"), texts["sbom"])) is not None:
            texts["sbom"] = text
        else:
            host.console.warn(
                f"the wheels of {lacking} packages are not in the store, so the bill of materials has neither"
                " their licenses nor the bills in them: `reprobuild image` with the lock fetches them"
            )
    for kind, text in texts.items():
        document = before.get(f"{kind}.json")
        if signer is not None and document is not None and _is_signed_by(document, text, signer):
            continue  # a new signature of the same would be one document more in each registry
        if signer is not None or not report.passed or not _is_signed(document, subject):
            documents[kind] = sign(text, signer)
    keep(host.home, str(subject), documents)
    return kept(host, str(subject))


def _fuller_bill(document: bytes | None, text: bytes) -> bytes | None:
    """Return the bill of materials in a document, if it is of the same files and says more than another."""
    if document is None:
        return None
    try:
        kept = statement_in(document)
        one, other = read_statement(kept), read_statement(text)
        same = one.kind == "sbom" and one.subjects >= other.subjects
        if same and len(kept) > len(text) and parts_of(one.predicate) >= parts_of(other.predicate):
            return kept
    except EvidenceError:
        pass
    return None


def _is_signed_by(document: bytes, text: bytes, signer: Signer | CommandSigner) -> bool:
    """Whether a document is this statement, signed with this key."""
    try:
        return statement_in(document) == text and bool(read_document(document, [signer.public_key]).signers)
    except EvidenceError:
        return False


def _is_signed(document: bytes | None, subject: Subject) -> bool:
    """Whether there is a document about the image that is whole and has a signature."""
    try:
        return (
            document is not None
            and is_signed(document)
            and bool(read_statement(statement_in(document)).subjects & subject.digests)
        )
    except EvidenceError:
        return False
