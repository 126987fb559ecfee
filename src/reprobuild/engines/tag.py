"""Tag an image, which requires a passing self-test report of that very image."""

from __future__ import annotations

from typing import Protocol

from ..errors import SelfTestError
from ..selftest.report import SelfTestReport


class Named(Protocol):
    """The images whose names are set."""

    def name(self, digest: str, name: str) -> None:
        """Name the image of a digest."""


def tag(images: Named, digest: str, name: str, report: SelfTestReport) -> None:
    """Name an image. Raises `SelfTestError` if the report is of another image or did not pass."""
    if report.digest != digest:
        raise SelfTestError(f"the report is of {report.digest}, not of {digest}, so {name} is not set")
    if report.mode == "prove":
        raise SelfTestError(f"the report is of --prove, which tests this machine, so {name} is not set")
    if report.mode == "part":
        raise SelfTestError(f"the report is of some checks only, so {name} is not set")
    if not report.passed:
        names = ", ".join(check.label for check in report.failed)
        raise SelfTestError(
            f"the self-test failed ({names}), so {name} is not set:\n" + "\n".join(report.failures()),
            hint=f"the candidate stays without a name: examine it with `reprobuild run {digest[:19]}`",
        )
    images.name(digest, name)
