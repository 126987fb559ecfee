"""The public functions that a passing report covers: which they are, and that a fault in each is seen."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from torch_python import make_venv, program_of, run

pytestmark = [pytest.mark.slow, pytest.mark.torch]

PAGE = Path(__file__).parents[2] / "docs/covered-functions.md"
COMMAND = "pytest -m slow tests/in_image/test_in_image_selftest_public.py --update-golden"
AIM = 95


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    python = make_venv(tmp_path_factory.mktemp("public") / "venv", torch=True)
    program = Path(__file__).with_name("public_coverage.py")
    done = run(python, program, program_of(python), "noise")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def versions(found: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in found["versions"].items())


def page_of(found: Any) -> str:
    """Return the page: the shares, what is not covered and why, and the functions."""
    public: dict[str, list[str]] = found["public"]
    covered = {
        at: [name for name in names if f"{at}.{name}" in found["called"]] for at, names in public.items()
    }
    counts = {f"`{at}`": (len(names), len(covered[at])) for at, names in public.items()}
    whole, part = (sum(each) for each in zip(*counts.values(), strict=True))
    counts["together"] = (whole, part)
    rows = [f"| {at} | {all_} | {some} | {100 * some / all_:.1f} % |" for at, (all_, some) in counts.items()]
    missing = [f"`{at}.{name}`" for at, names in public.items() for name in names if name not in covered[at]]
    left: dict[str, list[str]] = {}
    for at, reasons in found["uncounted"].items():
        for reason, names in reasons.items():
            left.setdefault(reason, []).extend(f"{at}.{name}" for name in names)
    lines = [*TEXT.format(versions(found), COMMAND).splitlines(), *rows, "", *BELOW.splitlines(), ""]
    lines += [*filled(f"Not called: {', '.join(missing)}.", ""), "", "## Not counted", ""]
    for reason, names in left.items():
        lines += filled(f"- {reason}: {' '.join(sorted(names))}", "  ")
    lines += ["", "## Called"]
    for at, names in covered.items():
        lines += ["", f"**{at}**", "", "```text", *filled(" ".join(names), ""), "```"]
    return "\n".join([*lines, ""])


def filled(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 130, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


TEXT = """# Functions that a passing report covers

With {0}. Written by
`{1}`, which runs
the [self-test](self-test.md) and sees which functions its checks call on the CPU. Each of them is also
made to give noise, alone: then a check must fail.

| Module | Public functions | Called | Share |
|---|---|---|---|
"""
BELOW = """Each is called on small inputs, twice in each of two processes, most with gradients. So a
passing report says that these functions repeat there. It does not say so of each type, size and option.
For a GPU only the checks that run on it count.
"""


def test_the_page_says_which_functions_a_passing_report_covers(
    found: Any, request: pytest.FixtureRequest
) -> None:
    assert {found["outcomes"][name] for name in ("functions", "conv2d", "torch-seed")} == {"passed"}
    public = {f"{module}.{name}" for module, names in found["public"].items() for name in names}
    assert 100 * len(public & set(found["called"])) >= AIM * len(public)
    text = page_of(found)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text)
    page = PAGE.read_text()
    # Another version than the page's has other functions.
    if f"With {versions(found)}." in page:
        assert page == text, f"{PAGE.name} differs; {COMMAND}"


def test_noise_in_any_one_of_them_fails_a_check(found: Any) -> None:
    assert len(found["noise"]) > 1000
    assert {name for name, status in found["noise"].items() if status != "failed"} == set()
