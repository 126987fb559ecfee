from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

import pytest

from reprobuild.host.console import ERASED, Console, one_line, printable


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_talk_goes_to_stderr_and_quiet_keeps_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        console = Console(quiet=quiet)
        console.step("doing")
        console.warn("beware")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "· doing\nwarning: beware\nwarning: beware\n"


@pytest.mark.parametrize(
    "text",
    ["torch[extra]==1", "[bold]", "[/]", "[/bold] x", r"C:\[x]", r"a\\[b]", ":smile:", "x" * 500, r"end\\"],
)
def test_names_are_printed_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.step(text)
    console.warn(text)
    assert capsys.readouterr().err == f"· {text}\nwarning: {text}\n"


def test_progress_is_silent_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Console().progress("fetching", 10) as advance:
        advance(10)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_takes_threads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Console().progress("torch[x]", 100) as advance:
        threads = [threading.Thread(target=advance, args=(25,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "torch[x]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07\x1b[31mred", "\\u001b]0;title\\u0007\\u001b[31mred"),
        ("\x9b31m", "\\u009b31m"),
        ("a\rb\x7f\x08", "a\\u000db\\u007f\\u0008"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("\udcff", "\\udcff"),
        ("a b\nc", "a b\nc"),
        ("Grüße, 世界", "Grüße, 世界"),
    ],
)
def test_a_stranger_s_text_does_nothing_to_a_terminal(
    text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printable(text) == shown
    Console().warn(text)
    assert capsys.readouterr().err == f"warning: {shown}\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\r", "a\\u000ab\\u0009c\\u000d"),
        ("\x1b[2K\x9b1A", "\\u001b[2K\\u009b1A"),
        ("\u202a\u202e\u2066\u2069\u200e", "\\u202a\\u202e\\u2066\\u2069\\u200e"),
        ("a\u200b\u200d\u2060\ufeff\xadb", "a\\u200b\\u200d\\u2060\\ufeff\\u00adb"),
        ("\u2028\u2029\x85\xa0\u3000", "\\u2028\\u2029\\u0085\\u00a0\\u3000"),
        ("\u3164\u2800\u034f\ufe0f", "\\u3164\\u2800\\u034f\\ufe0f"),
        ("\U000e0041\udcff", "\\U000e0041\\udcff"),
        ("Grüße, 世界 'a  b' \\n", "Grüße, 世界 'a  b' \\n"),
    ],
)
def test_a_value_that_is_agreed_to_is_one_line_and_hides_nothing(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_json_stays_json() -> None:
    value = {"a": "\x1b[31m\u202e\u2028", "b": ["ä"]}
    assert json.loads(printable(json.dumps(value, ensure_ascii=False))) == value


def test_a_bar_within_the_block_of_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    console = Console()
    with console.progress("fetch", 10) as outer:
        with console.progress("layers", 20) as inner:
            inner(20)
        outer(10)
    with console.progress("alone", 5) as advance:
        advance(5)
    said = capsys.readouterr().err
    assert "layers" in said
    assert "alone" in said


@pytest.mark.parametrize("terminal", [False, True])
def test_a_phase_that_takes_long_says_for_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """Off a terminal, and on one that knows no escape sequences, as of an editor."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "dumb")
    console = Console()
    with console.clock(every=0.02):
        console.step("resolving")
        console.detail("check 14 of 60")
        wait_for(lambda: "still" in (seen := capsys.readouterr().err) and "check 14 of 60" in seen)
        console.rest()  # a result is printed
        capsys.readouterr()
    assert capsys.readouterr().err == ""


def test_a_clock_on_a_terminal_is_one_line_that_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    console, seen = Console(), ""

    def shown() -> bool:
        nonlocal seen
        seen += capsys.readouterr().err
        return "0:00" in seen

    with console.clock(every=0.02):
        console.step("resolving")
        wait_for(shown)
        console.step("building")
    seen += capsys.readouterr().err
    assert f"0:00{ERASED}" in seen.partition("building")[0]


def test_a_quiet_clock_does_not_tick(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    with console.clock(every=0.001):
        console.step("resolving")
        assert "clock" not in [thread.name for thread in threading.enumerate()]
    assert capsys.readouterr().err == ""
