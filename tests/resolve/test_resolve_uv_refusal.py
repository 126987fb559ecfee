"""What uv says when it refuses, read word by word: its sentences, and the real uv, oldest and newest."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reprobuild.errors import ResolveError
from reprobuild.host.process import Completed
from reprobuild.resolve.uv_command import _refusal
from reprobuild.resolve.uv_refusal import Kind, Refusal, RefusedError, UnreachableError, UnreadError, refused
from support.index import Index

pytest_plugins = ["support.family"]

NO_SOLUTION = "error: No solution found when resolving dependencies\n  cause: "


def refusal(text: str, backend: str | None = None, as_of: date | None = None) -> tuple[str, str]:
    stderr = (NO_SOLUTION + text).encode()
    found = _refusal(Completed(returncode=1, stdout=b"", stderr=stderr), as_of, backend)
    return found.message, found.hint


def read(text: str) -> Refusal:
    error = refused(NO_SOLUTION + text)
    assert isinstance(error, RefusedError), error.hint
    return error.refusal


def test_thousands_of_lines_are_cut() -> None:
    message, _ = refusal("\n".join(f"Because a=={n} depends on b and" for n in range(2742)))
    assert len(message.splitlines()) == 21
    assert message.endswith("and 2722 more lines of uv's reasons")


def test_a_build_that_only_pytorch_s_index_has() -> None:
    text = "Because there is no version of torch==2.4.1+cpu and you require it"
    assert refusal(text)[1] == "PyTorch's own index may have that build: give --index pytorch"
    assert "give --index" not in refusal(text, "cpu")[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Because all versions of one have no usable wheels and you require one", {"one"}),
        ("Because encodec==0.1.1 has no usable wheels and all versions of vocos depend on x", {"encodec"}),
        ("Because gruut[de]==2.2.3 has no usable wheels and you require gruut[de]==2.2.3", {"gruut"}),
        ("Because a>=0.4.0 has no usable wheels and b depends on c", {"a"}),
        (
            "And because diff>=1.2.1,<=1.2.2 has no wheels with a matching Python ABI tag (e.g., `cp311`)",
            {"diff"},
        ),
        (
            "Because all of:\n a==1\n a==2\nhave no wheels with a matching platform tag and b==1 was yanked",
            {"a"},
        ),
        ("Because wave>=1.0, <=2.3.6 have no usable wheels", {"wave"}),
        ("Because x{sys_platform == 'linux'}==1 was yanked (reason: has no usable wheels)", set()),
        ("Because there are no versions of c and only d>2 is available", set()),
    ],
)
def test_what_has_no_wheel(text: str, names: set[str]) -> None:
    assert read(text).missing_wheels == names


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Because numpy==2.0 ships no artifact that suits and you require numpy", "ships no artifact"),
        ("Because numpy==2.0 has no usable wheels today and you require numpy", "today and"),
        (
            "Because numpy==2.0 lacks wheels, we can conclude that your requirements are unsatisfiable.",
            "lacks",
        ),
        ("Because numpy==2.0 → pandas", "→ pandas"),
    ],
)
def test_words_that_are_not_known_are_quoted_and_nothing_is_concluded(text: str, quoted: str) -> None:
    error = refused(NO_SOLUTION + text)
    assert isinstance(error, UnreadError)
    assert text in error.message
    assert quoted in error.hint


@pytest.mark.parametrize("said", ["", "error: the moon is full\n  cause: really"])
def test_a_failure_that_is_not_known_is_quoted(said: str) -> None:
    error = refused(said)
    assert isinstance(error, UnreadError)
    assert ("the moon is full\nreally" in error.message) == bool(said)
    assert "nothing is concluded" in error.hint


# --- The real uv ---

CASES: dict[str, tuple[Sequence[str], Kind, dict[str, object]]] = {
    "unknown": (
        ["filelock", "nobody-has-a-package-of-so-long-a-name-as-this-one-that-must-be-wrapped"],
        Kind.UNKNOWN_NAME,
        {"unknown": {"nobody-has-a-package-of-so-long-a-name-as-this-one-that-must-be-wrapped"}},
    ),
    "sources": (
        ["source-alone>=1.0", "filelock"],
        Kind.MISSING_WHEELS,
        {"missing_wheels": {"source-alone"}, "only_sources": {"source-alone"}},
    ),
    "platform": (
        ["of-another-machine==1.0"],
        Kind.MISSING_WHEELS,
        {"missing_wheels": {"of-another-machine"}},
    ),
    "abi": (["of-another-python==1.0"], Kind.WRONG_ABI, {"wrong_abi": ("of-another-python==1.0",)}),
    "python": (["wants-python==1.0"], Kind.WRONG_PYTHON, {"wrong_python": True}),
    "contradiction": (
        ["torch==2.9.0", "numpy", "nvidia-cuda-runtime==12.*"],
        Kind.CONTRADICTION,
        {"missing_wheels": set(), "unknown": set()},
    ),
    "no version": (["numpy==99", "packaging"], Kind.CONTRADICTION, {"named": {"numpy"}}),
    "many": (
        ["many-versions", "filelock>=1.1"],
        Kind.CONTRADICTION,
        {"named": {"many-versions", "filelock"}},
    ),
}
"""What is asked for, the cause, and what else of the refusal counts."""


def ask(uv: Path, folder: Path, requirements: Sequence[str]) -> ResolveError:
    (folder / "uv.toml").touch()
    command = [
        str(uv),
        "pip",
        "compile",
        "--format",
        "pylock.toml",
        "--output-file",
        "pylock.toml",
        "--quiet",
    ]
    command += [
        "--python",
        sys.executable,
        "--python-version",
        "3.11",
        "--only-binary",
        ":all:",
        "--no-cache",
    ]
    command += ["--python-platform", "x86_64-manylinux_2_36", "-"]
    text = "".join(f"{each}\n" for each in requirements).encode()
    env = {**os.environ, "UV_HTTP_RETRIES": "0", "NO_COLOR": "1"}
    done = subprocess.run(command, input=text, cwd=folder, env=env, capture_output=True, check=False)
    assert done.returncode
    return refused(done.stderr.decode())


def held_to_the_contract(uv: Path, index: Index, folder: Path) -> None:
    index.add_sdist("source-alone", "1.0")
    index.add_sdist("source-alone", "1.1")
    index.add("of-another-machine", "1.0", tag="cp311-cp311-win_amd64")
    index.add("of-another-python", "1.0", tag="cp39-cp39-manylinux_2_17_x86_64")
    index.add("wants-python", "1.0", python=">=3.13")
    for number in range(12):
        index.add("many-versions", f"1.{number}", requires=["filelock==1.0"])
    for name, (requirements, kind, fields) in CASES.items():
        error = ask(uv, folder, requirements)
        assert isinstance(error, RefusedError), f"{name}: {error.message} {error.hint}"
        assert error.refusal.kind is kind, f"{name}: {error.message}"
        assert {key: getattr(error.refusal, key) for key in fields} == fields, name
    index.status = 503
    assert isinstance(ask(uv, folder, ["numpy"]), UnreachableError)


def test_the_installed_uv_refuses_in_known_words(family: Index, tmp_path: Path) -> None:
    held_to_the_contract(Path(sys.executable).with_name("uv"), family, tmp_path)


@pytest.mark.slow
def test_the_oldest_uv_that_is_allowed_refuses_in_known_words(
    family: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (bounds,) = (Requirement(text).specifier for text in project["dependencies"] if text.startswith("uv>"))
    lowest = next(each.version for each in bounds if each.operator == ">=")
    assert any(each.operator == "<" for each in bounds)
    with monkeypatch.context() as usual:
        usual.delenv("UV_DEFAULT_INDEX")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(tmp_path / "uv"),
        ]
        subprocess.run([*command, f"uv=={lowest}"], check=True)
    (tmp_path / "work").mkdir()
    held_to_the_contract(tmp_path / "uv" / "bin" / "uv", family, tmp_path / "work")


@pytest.mark.parametrize("retried", ["error: ", "error: Request failed after 3 retries in 10.6s\n  cause: "])
def test_what_cannot_be_reached_is_named_by_its_address(retried: str) -> None:
    """As uv 0.13 says it, at once and after retries."""
    said = (
        f"{retried}Failed to fetch: https://index.example/simple/torch/\n"
        "  cause: error sending request for url (https://index.example/simple/torch/)\n"
        "  cause: client error (Connect)\n  cause: Connection refused (os error 111)\n"
    )
    assert refused(said).message == (
        "an index cannot be reached: https://index.example/simple/torch/: Connection refused (os error 111)"
    )
    assert refused(said.replace("/torch/", "/x-1-py3-none-any.whl")).message.startswith(
        "a file cannot be reached: https://index.example/simple/x-1"
    )


@pytest.mark.parametrize(
    ("platforms", "elsewhere"), [("`win32`, `win_amd64`", True), ("`manylinux_2_28_s390x`", False)]
)
def test_a_package_for_other_systems_alone_is_told_so(platforms: str, elsewhere: bool) -> None:
    said = (
        "error: No solution found when resolving dependencies:\n"
        "  cause: Because pywin32==306 has no wheels with a matching platform tag and you "
        "require pywin32==306, we can conclude that your requirements are unsatisfiable.\n\n"
        f"hint: Wheels are available for `pywin32` (v306) on the following platforms: {platforms}\n"
    )
    error = refused(said)
    assert isinstance(error, RefusedError)
    told = error.refusal.hints[1:]
    assert told == (
        ("pywin32 has no wheel for Linux: remove it, or add ; sys_platform != 'linux' to its requirement",)
        if elsewhere
        else ()
    )
