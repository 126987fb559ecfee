"""Lock files that are read: refused with the place, or equal to what was written."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import tomli_w
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.pylock import Pylock

from reprobuild.errors import LockError
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from support.locks import LOCK, OTHER_FILES, SMALL, SMALL_TEXT, TEXT
from support.strategies import locks


@given(locks())
@settings(max_examples=30)
def test_parse_after_dump_is_the_same_lock(lock: Lock) -> None:
    text = lock.dump()
    again = parse_lock(text, "again")
    assert again == lock
    assert (again.dump(), again.digest) == (text, lock.digest)
    Pylock.from_dict(tomllib.loads(text))


@given(st.integers(0, len(SMALL_TEXT.encode()) - 1), st.integers(1, 255))
@settings(max_examples=150)
@example(SMALL_TEXT.encode().index(b"1.0"), 1)
@example(SMALL_TEXT.encode().index(b"'linux'") + 1, 1)
@example(SMALL_TEXT.encode().index(b"created-by") + 14, 1)
@example(SMALL_TEXT.encode().index(b"2024-07-28"), 1)
def test_a_flipped_byte_is_refused_or_says_the_same(place: int, change: int) -> None:
    data = bytearray(SMALL_TEXT.encode())
    data[place] ^= change
    try:
        text = data.decode()
        lock = parse_lock(text, "flipped")
    except (UnicodeDecodeError, LockError):
        return
    assert lock == SMALL  # a byte of white space or of a fraction of a second


@given(st.data())
@settings(max_examples=100)
def test_a_byte_or_line_that_comes_goes_or_moves_is_refused_or_says_the_same(data: st.DataObject) -> None:
    text = SMALL_TEXT
    match data.draw(st.sampled_from(["come", "go", "line-goes", "line-twice", "lines-swap"])):
        case "come":
            place = data.draw(st.integers(0, len(text)))
            text = text[:place] + data.draw(st.characters(codec="utf-8")) + text[place:]
        case "go":
            place = data.draw(st.integers(0, len(text) - 1))
            text = text[:place] + text[place + 1 :]
        case change:
            lines = text.splitlines(keepends=True)
            first, second = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            if change == "line-goes":
                del lines[first]
            elif change == "line-twice":
                lines.insert(second, lines[first])
            else:
                lines[first], lines[second] = lines[second], lines[first]
            text = "".join(lines)
    with suppress(LockError):
        assert parse_lock(text, "edited") == SMALL


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    table = deepcopy(tomllib.loads(TEXT))
    change(table)
    return tomli_w.dumps(table)


def own(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda table: table["tool"]["reprobuild"].update(values)


def files(**values: Any) -> Callable[[dict[str, Any]], object]:
    return own(**{"own-files": {**OTHER_FILES.to_dict(), **values}})


def wheel(**values: Any) -> Callable[[dict[str, Any]], object]:
    def change(table: dict[str, Any]) -> None:
        spot = table["packages"][3]["wheels"][0]
        spot.update({key.replace("_", "-"): value for key, value in values.items()})

    return change


def deb(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda table: table["tool"]["reprobuild"]["debian"][2].update(values)


BAD: Mapping[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "lock-version": (lambda t: t.update({"lock-version": "2.0"}), "not a PEP 751 lock"),
    "minor": (lambda t: t.update({"lock-version": "1.1"}), "lock-version: expected '1.0', got '1.1'"),
    "key": (lambda t: t.update(extras=["a"]), "extras: unknown key"),
    "creator": (lambda t: t.update({"created-by": "uv"}), "created-by: expected 'reprobuild', got 'uv'"),
    "python": (
        lambda t: t.update({"requires-python": ">=3.11"}),
        "requires-python: expected '==3.11.*', got '>=3.11'",
    ),
    "environments": (lambda t: t.pop("environments"), "environments: expected "),
    "packages": (lambda t: t.pop("packages"), "not a PEP 751 lock"),
    "packages-type": (lambda t: t.update(packages={"a": 1}), "not a PEP 751 lock"),
    "no-tool": (lambda t: t.pop("tool"), "[tool.reprobuild] is missing"),
    "other-tool": (lambda t: t["tool"].update(uv={}), "tool.uv: unknown key"),
    "tool-type": (lambda t: t["tool"].update(reprobuild=5), "tool.reprobuild: expected a table"),
    "own-key": (own(colour=1), "tool.reprobuild.colour: unknown key"),
    "format": (own(format=2, new=1), "tool.reprobuild.format: expected 1, got 2"),
    "format-bool": (own(format=True), "tool.reprobuild.format: expected a whole number"),
    "digest-type": (own(digest=1), "tool.reprobuild.digest: expected text"),
    "no-digest": (lambda t: t["tool"]["reprobuild"].pop("digest"), "tool.reprobuild.digest: missing"),
    "digest": (own(digest="sha256:" + "0" * 64), "does not match its digest"),
    "platform": (own(platform="windows/amd64"), "tool.reprobuild.platform: 'windows/amd64'"),
    "epoch": (own(epoch=-1), "tool.reprobuild.epoch: -1"),
    "epoch-high": (own(epoch=2**33), "tool.reprobuild.epoch"),
    "request": (own(request={"cuda": "x"}), "tool.reprobuild.request.cuda: 'x'"),
    "request-digest": (
        own(**{"request-digest": "sha256:0"}),
        "tool.reprobuild.request-digest: does not match",
    ),
    "stack": (own(stack={}), "tool.reprobuild.stack: does not match"),
    "variable": (own(variables={"lower": "1"}), "tool.reprobuild.variables.lower"),
    "variable-strange": (
        own(variables={"LD_PRELOAD": "/x.so"}),
        "LD_PRELOAD: is not a variable of the profile",
    ),
    "variable-line": (own(variables={"A": "1\n2"}), "tool.reprobuild.variables.A"),
    "variable-type": (own(variables={"A": 1}), "tool.reprobuild.variables.A"),
    "own-files": (own(**{"own-files": 1}), "tool.reprobuild.own-files: expected a table"),
    "own-files-key": (files(colour=1), "own-files.colour: unknown key"),
    "own-files-version": (files(version="\x1b[2J"), "own-files.version: '\\x1b[2J' is not a valid version"),
    "own-files-none": (files(sha256={}), "own-files.sha256: expected a table of 1 to 64 files"),
    "own-files-many": (files(sha256={f"f{i}": "0" * 64 for i in range(65)}), "expected a table of 1 to 64"),
    "own-files-hash": (files(sha256={"a.py": "0"}), "own-files.sha256.a.py: expected a file name and 64"),
    "own-files-path": (files(sha256={"../a.py": "0" * 64}), "own-files.sha256.../a.py: expected a file name"),
    "debian-type": (own(debian=["bash"]), "tool.reprobuild.debian[0]: expected a table"),
    "debian-file": (
        lambda t: deb(path=t["tool"]["reprobuild"]["debian"][1]["path"])(t),
        "tool.reprobuild.debian: bash_5.2.15-2+b7_amd64.deb is listed more than once",
    ),
    "debian-key": (deb(md5="0"), "tool.reprobuild.debian[2].md5: unknown key"),
    "debian-name": (deb(name="Bash"), "tool.reprobuild.debian[2].name: 'Bash'"),
    "debian-option": (deb(name="-y"), "tool.reprobuild.debian[2].name"),
    "debian-path": (deb(path="/etc/passwd"), "tool.reprobuild.debian[2].path"),
    "debian-escape": (deb(path="pool/../../x.deb"), "tool.reprobuild.debian[2].path"),
    "debian-version": (deb(version="1 2"), "tool.reprobuild.debian[2].version"),
    "debian-hash": (deb(sha256="A" * 64), "tool.reprobuild.debian[2].sha256"),
    "debian-size": (deb(size=0), "tool.reprobuild.debian[2].size: 0"),
    "debian-twice": (deb(name="bash"), "tool.reprobuild.debian: bash is listed more than once"),
    "no-python": (
        lambda t: t["tool"]["reprobuild"].update(
            debian=[d for d in t["tool"]["reprobuild"]["debian"] if d["name"] != "python3.11"]
        ),
        "does not match the locked packages",
    ),
    "no-pip": (
        lambda t: t.update(packages=[p for p in t["packages"] if p["name"] != "pip"]),
        "packages: pip not found",
    ),
    "twice": (
        lambda t: t["packages"].append(t["packages"][0]),
        "packages: filelock is listed more than once",
    ),
    "marker": (lambda t: t["packages"][3].update(marker="a"), "not a PEP 751 lock"),
    "package-key": (
        lambda t: t["packages"][3].update({"requires-python": ">=3"}),
        "packages[3].requires-python: unknown key",
    ),
    "two-wheels": (
        lambda t: t["packages"][3].update(wheels=t["packages"][3]["wheels"] * 2),
        "packages[3].wheels: expected one wheel, found 2",
    ),
    "no-version": (lambda t: t["packages"][3].pop("version"), "packages[3].version: missing"),
    "hash-missing": (wheel(hashes={}), ""),
    "hash-kind": (wheel(hashes={"md5": "0" * 32}), "packages[3].wheels[0].hashes.md5: unknown key"),
    "hash-two": (
        wheel(hashes={"sha256": "0" * 64, "sha512": "0" * 128}),
        "packages[3].wheels[0].hashes.sha512: unknown key",
    ),
    "hash-short": (wheel(hashes={"sha256": "0" * 63}), "packages[3].wheels[0].hashes.sha256"),
    "hash-upper": (wheel(hashes={"sha256": "A" * 64}), "packages[3].wheels[0].hashes.sha256"),
    "hash-line": (wheel(hashes={"sha256": "0" * 64 + "\n"}), "packages[3].wheels[0].hashes.sha256"),
    "size": (wheel(size=-1), ""),
    "size-bool": (wheel(size=True), ""),
    "filename-escape": (wheel(name="../markupsafe-2.1.5-py3-none-any.whl"), "packages[3].wheels[0]"),
    "filename-other": (wheel(name="evil-2.1.5-py3-none-any.whl"), "packages[3].wheels[0]"),
    "filename-version": (
        wheel(name="markupsafe-2.1.6-py3-none-any.whl"),
        "packages[3].wheels[0]",
    ),
    "filename-form": (wheel(name="markupsafe-2.1.5.tar.gz"), "packages[3].wheels[0]"),
    "filename-shell": (wheel(name="markupsafe-2.1.5-py3-none-$(x).whl"), "packages[3].wheels[0]"),
    "url-secret": (wheel(url="https://me:secret@packages.example.org/a.whl"), "contains a user name"),
    "url-user": (wheel(url="https://me@packages.example.org/a.whl"), "contains a user name"),
    "url-scheme": (wheel(url="ftp://packages.example.org/a.whl"), "packages[3].wheels[0].url"),
    "url-host": (wheel(url="https:///a.whl"), "packages[3].wheels[0].url"),
    "url-brackets": (wheel(url="https://[x/a.whl"), "packages[3].wheels[0].url"),
    "url-space": (wheel(url="https://packages.example.org/a b.whl"), "packages[3].wheels[0].url"),
    "url-line": (wheel(url="https://packages.example.org/a\nb.whl"), "packages[3].wheels[0].url"),
    "time-naive": (wheel(upload_time=datetime(2024, 1, 1)), "upload-time"),  # noqa: DTZ001 -- the point
    "time-type": (wheel(upload_time="2024-01-01"), "upload-time"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_lock_is_refused_with_the_place(case: str) -> None:
    change, says = BAD[case]
    with pytest.raises(LockError) as error:
        parse_lock(changed(change), "envs/pylock.a.toml")
    assert error.value.message.startswith("envs/pylock.a.toml: ")
    assert says in error.value.message
    assert "secret" not in error.value.message
    assert error.value.hint
    assert ("lock --from envs/pylock.a.toml" in error.value.hint) is (case == "no-tool")


def test_a_time_that_no_zone_can_hold_is_refused() -> None:
    # tomli_w cannot write it, a hand can.
    text = TEXT.replace("2024-09-07 16:18:46+00:00", "0001-01-01 00:00:00+10:00")
    with pytest.raises(LockError, match="upload-time"):
        parse_lock(text, "a.toml")


def test_a_fraction_of_a_second_and_a_zone_say_nothing() -> None:
    text = TEXT.replace("2024-09-07 16:18:46+00:00", "2024-09-07 18:18:46.25+02:00")
    assert parse_lock(text, "a.toml") == LOCK


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
@example("a = " + "[" * 5000)
@example("a = " + "1" * 5000)
def test_garbage_raises_the_lock_s_own_error_and_no_other(text: str) -> None:
    with pytest.raises(LockError):
        parse_lock(text, "a.toml")


toml_values = st.one_of(
    st.text(max_size=3), st.integers(-2, 2), st.booleans(), st.just([]), st.just({}), st.just([{}]),
    st.just({"a": {}}), st.floats(), st.datetimes(), st.dates(), st.times(), st.just("1" * 5000),
    st.just(datetime.max.replace(tzinfo=UTC) - timedelta(1)),
)  # fmt: skip


def spots(value: Any) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in [(value, key), *spots(inner)]]


SPOTS = len(spots(tomllib.loads(SMALL_TEXT)))


@given(st.integers(0, SPOTS - 1), toml_values)
@settings(max_examples=120)
def test_any_type_in_any_place_raises_the_lock_s_own_error_and_no_other(index: int, value: Any) -> None:
    table = tomllib.loads(SMALL_TEXT)
    spot, key = spots(table)[index]
    spot[key] = value
    with suppress(LockError):
        assert parse_lock(tomli_w.dumps(table), "a.toml") == SMALL  # the same, said otherwise


def test_a_file_name_that_no_file_system_takes_is_refused() -> None:
    first = SMALL.debian[0]
    long = replace(first, path=f"pool/main/{'a' * 300}.deb")
    text = replace(SMALL, debian=[long, *SMALL.debian[1:]]).dump()
    with pytest.raises(
        LockError, match=r"x: tool\.reprobuild\.debian: 'aaa.*… is too long: expected at most 255"
    ):
        parse_lock(text, "x")
