"""``--verbose``: log processes and requests to standard error."""

from __future__ import annotations

import logging

from ..host.console import printable
from ..net.scrubbing import ScrubFilter


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def log_to_standard_error() -> None:
    """Log commands and requests, without passwords, in what is safe to print."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(relativeCreated)8.0f ms %(name)s: %(message)s"))
    handler.addFilter(ScrubFilter())
    logging.getLogger("reprobuild").addHandler(handler)
    logging.getLogger("reprobuild").setLevel(logging.DEBUG)
