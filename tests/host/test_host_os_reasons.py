"""The signal that ended a program, in words."""

from __future__ import annotations

import pytest

from reprobuild.host.os_reasons import clock_remedy, killed_by


@pytest.mark.parametrize(
    ("status", "words"),
    [(-9, "it was killed (SIGKILL)"), (139, "it was killed (SIGSEGV)"), (1, ""), (255, "")],
)
def test_the_status_of_a_process_or_a_shell(status: int, words: str) -> None:
    assert killed_by(status) == words


@pytest.mark.parametrize(
    "said",
    [
        "Release file for http://h.example/InRelease is not valid yet (invalid for another 3d 2h).",
        "E: Release file for http://h.example/InRelease is expired (invalid since 3d 2h 16min 27s).",
        "The following signatures were invalid: EXPKEYSIG 6ED0E7B82643E131 Debian Archive",
        "Signature by 6ED0E7B8 was created after the --not-after date.",
        "certificate verify failed: certificate is not yet valid (_ssl.c:1000)",
        "certificate has expired",
        "invalid peer certificate: certificate expired: verification time 2208988800 (UNIX)",
    ],
)
def test_what_is_of_another_time(said: str) -> None:
    """In the words of apt, gpgv, sqv, OpenSSL and rustls."""
    hint = clock_remedy(said, "do it")
    assert hint.startswith("check the clock of this machine, which says 20")
    assert hint.endswith("; if it is right, do it")


def test_what_is_of_no_time() -> None:
    assert clock_remedy("certificate verify failed: self-signed certificate", "do it") == "do it"
