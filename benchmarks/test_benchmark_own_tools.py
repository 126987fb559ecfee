"""What is imported of real projects is what their own tools would install, or the difference is said.

The files are those of `test_benchmark_real_files.py`, from where it takes them. Only the import and the
Python packages are tried: no Debian, no build, and the index's own torch. Locks are compared pin by pin with
what their tool exports (uv; poetry, pdm and pipenv where they are on the PATH), all else with
`uv pip compile` on the same index. A difference counts as said where a line for the user names the package.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from test_benchmark_real_files import FOLDER, LIST, ONLY, checkout

from reprobuild.errors import ReprobuildError
from reprobuild.imports.common import Imported, fitting_python, wanted_of
from reprobuild.imports.recognize import pins_everything, read_import
from reprobuild.imports.request_keys import request_table
from reprobuild.net.index_settings import find_links, uv_program
from reprobuild.net.session import indexes, session
from reprobuild.request.model import Request
from reprobuild.resolve.target import TargetPython
from reprobuild.resolve.uv_command import resolve_python
from support.resolving import resolution

MOST_HINTS = 2
SECONDS = 600
_COMPILED = re.compile(r"requirements.*\.txt|pyproject\.toml|setup\.(py|cfg)")
Pins = dict[str, str]


@dataclass(frozen=True, slots=True)
class Compared:
    """What became of one file."""

    verdict: str
    """"right", "said", "silent", "refused", or "not compared"."""
    why: str = ""
    silent: Sequence[str] = field(default_factory=tuple)


def imported(file: Path) -> Imported:
    """Import a file, with the indexes and the loosened pins that messages name."""
    given: dict[str, list[str]] = {"index-from-file": [], "loosen": []}
    for _ in range(MOST_HINTS):
        try:
            return read_import(file, hosts=given["index-from-file"], loosen=given["loosen"])
        except ReprobuildError as error:
            more = re.findall(r"--(index-from-file|loosen) ([^\s,;]+)", error.hint or "")
            if not more:
                raise
            for option, value in more:
                given[option].append(value)
    return read_import(file, hosts=given["index-from-file"], loosen=given["loosen"])


def pins(text: str, target: TargetPython) -> Pins:
    """Return the pins of a requirements file that are for the target; "" for an address."""
    found: Pins = {}
    for line in text.replace("\\\n", " ").splitlines():
        try:
            each = Requirement(re.sub(r"\s(--hash|#).*", "", line).strip())
        except InvalidRequirement:
            continue
        # Poetry repeats the project's own Python, to the patch version.
        full = re.search(r"python_full_version == \"([0-9.]+)\"", line)
        here = {**target.markers, **({"python_full_version": full[1]} if full else {})}
        if each.marker is None or each.marker.evaluate(here):
            version = next((s.version for s in each.specifier if s.operator in ("==", "===")), "")
            found[canonicalize_name(each.name)] = version.partition("+")[0]
    return found


def ours(file: Path, found: Imported, request: Request, target: TargetPython) -> Pins:
    """Return what a lock pins, or what the index gives for another file."""
    # A request always has a torch; one that the file does not ask for is none of its tool's.
    is_asked = wanted_of(found, request.python).torch is not None
    is_asked &= not any("torch is left out" in line for line in found.ignored)
    torch = [f"torch{request.torch_specifier}"] if is_asked else []
    if pins_everything(file):
        return pins("\n".join([*request.packages, *torch]), target)
    with session() as http:
        about = resolution(http, request, target=target, hashes=found.hashes, order=found.order)
        packages = resolve_python([*request.packages, *torch], about)
    return {p.name: p.version.partition("+")[0] if p.source is None else "" for p in packages}


def theirs(file: Path, target: TargetPython, mine: Pins) -> Pins | None:
    """Return what the project's own tool installs; None where it does not say."""
    if file.name == "poetry.lock":
        return _poetry(file.parent, target, mine)
    if file.name == "pdm.lock":
        return _pdm(file.parent, target)
    if file.name == "pyproject.toml" and "[tool.poetry.dependencies]" in file.read_text("utf-8"):
        return _poetry_project(file, target, mine)
    compiled = ["pip", "compile", file.name, "--quiet", "--no-header", "--refresh", "--only-binary", ":all:"]
    compiled += ["--python-version", target.python, "--python-platform", target.uv_platform]
    for link in find_links():
        compiled += ["--find-links", link]
    exported = ["export", "--frozen", "--no-hashes", "--no-emit-project", "--no-default-groups"]
    if file.name == "uv.lock":
        command = [uv_program(), *exported, "--python", target.python]
    elif file.name == "Pipfile.lock":
        command = ["pipenv", "requirements"]
    elif file.name.startswith("pylock."):
        return _pylock(file, target)
    elif _COMPILED.fullmatch(file.name):
        # pip knows no table of uv's above a requirements.txt.
        command = [uv_program(), *compiled, *(["--no-config"] if file.suffix == ".txt" else [])]
    else:
        return None
    said = _said(command, file.parent)
    return None if said is None else pins(said, target)


def _pylock(file: Path, target: TargetPython) -> Pins | None:
    with tempfile.TemporaryDirectory() as made:
        command = [uv_program(), "pip", "install", "--dry-run", "--target", made, "-r", file.name]
        command += ["--python-version", target.python, "--python-platform", target.uv_platform]
        said = _said(command, file.parent)
    return None if said is None else dict(re.findall(r"^ \+ (\S+)==([^+\s]+)", said, re.MULTILINE))


def _said(command: Sequence[str], folder: Path, **more: str) -> str | None:
    """Return what a tool says; None where it fails, or is not on the PATH."""
    if shutil.which(command[0]) is None:
        return None
    env = {key: value for key, value in os.environ.items() if not key.startswith("VIRTUAL_ENV")}
    env |= {"NO_COLOR": "1", "PDM_CHECK_UPDATE": "0", "POETRY_VIRTUALENVS_CREATE": "false", "PIPENV_YES": "1"}
    done = subprocess.run(
        [*command], cwd=folder, env=env | more, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return done.stdout + done.stderr if done.returncode == 0 else None


def _poetry(folder: Path, target: TargetPython, mine: Pins) -> Pins | None:
    said = _said(["poetry", "export", "--format", "requirements.txt", "--without-hashes"], folder)
    if said is None:
        return None
    # The export leaves out what is required as `>=1,<2 || >2`, which Poetry installs.
    with tempfile.TemporaryDirectory() as made:  # an environment of the project's Python
        env = {"POETRY_VIRTUALENVS_CREATE": "true", "POETRY_VIRTUALENVS_PATH": made}
        shown = _said(["poetry", "show", "--only", "main", "--no-ansi"], folder, **env) or ""
    rows = re.findall(r"^(\S+) +(?:\(!\) )?([0-9]\S*)", shown, re.MULTILINE)
    return pins(said, target) | {
        canonicalize_name(name): version for name, version in rows if canonicalize_name(name) in mine
    }


def _poetry_project(file: Path, target: TargetPython, mine: Pins) -> Pins | None:
    """Return what Poetry locks, for the one Python alone: else it takes what fits all that it allows."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, file.parent.absolute().name)
        shutil.copytree(file.parent, folder, symlinks=True, ignore=shutil.ignore_patterns("poetry.lock"))
        text, count = re.subn(
            r"(?m)^python *= *(\"[^\"]*\"|'[^']*')", f'python = "~{target.python}"', file.read_text("utf-8")
        )
        text = re.sub(r"(?m)^requires-python *=.*", f'requires-python = "=={target.python}.*"', text)
        if "[[tool.poetry.source]]" not in text:
            # The index's pages: what it knows of a release beside them need not be whole.
            text += f'\n[[tool.poetry.source]]\nname = "ours"\nurl = "{indexes().default}"\n'
        (folder / file.name).write_text(text, "utf-8")
        if (not count and "requires-python" not in text) or _said(["poetry", "lock"], folder) is None:
            return None
        return _poetry(folder, target, mine)


def _pdm(folder: Path, target: TargetPython) -> Pins | None:
    export = ["pdm", "export", "--prod", "--format", "requirements", "--without-hashes"]
    said = _said(export, folder)
    if said is None:
        # A lock without `inherit_metadata` is made anew, from its own pins, as PDM says.
        with tempfile.TemporaryDirectory() as made:
            copy = Path(made, folder.absolute().name)
            shutil.copytree(folder, copy, symlinks=True)
            _said(["pdm", "lock", "--update-reuse", "--strategy", "inherit_metadata"], copy)
            said = _said(export, copy)
    return None if said is None else pins(said, target)


def compared(file: Path) -> Compared:
    """Compare one file, in its folder."""
    os.chdir(file.parent)
    file = Path(file.name)
    try:
        found = imported(file)
        if found.conda:
            return Compared("not compared", "conda's solver chooses")
        cuda = wanted_of(found, fitting_python(found, None)).cuda or "12.8"
        request = Request.from_dict(request_table(found, {"cuda": cuda}), "")
        target = TargetPython(request.python, "amd64", (2, 36))
        mine = ours(file, found, request, target)
    except ReprobuildError as error:
        return Compared("refused", error.message[:200])
    other = theirs(file, target, mine)
    if other is None:
        return Compared("not compared", "its tool does not say, or is not here")
    differing = differences(mine, other)
    lines = " ".join([*found.applied, *found.ignored, *found.loosened]).lower()
    # Of all packages a line says that newer releases are excluded there.
    is_named = found.exclude_newer is not None
    silent = [f"{name}: {what}" for name, what in differing.items() if not is_named and name not in lines]
    if silent:
        return Compared("silent", silent=silent)
    return Compared("said" if differing else "right")


def differences(mine: Mapping[str, str], other: Mapping[str, str]) -> Pins:
    """Return the packages that differ, and how."""
    return {
        name: f"{other.get(name, 'none')} by its tool, {mine.get(name, 'none')} here"
        for name in sorted(mine.keys() | other.keys())
        if mine.get(name) != other.get(name) and "" not in (mine.get(name), other.get(name))
    }


def test_no_real_file_differs_in_silence(tmp_path: Path) -> None:
    lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    entries = [line.split(" ", 2) for line in lines if re.search(ONLY, line)]
    folder = Path(FOLDER) if FOLDER else tmp_path / "checkouts"
    folder.mkdir(exist_ok=True)
    files = [checkout(repository, commit, folder) / file for repository, commit, file in entries]
    with ProcessPoolExecutor(3, max_tasks_per_child=1, mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(compared, files))
    for (repository, _, file), outcome in zip(entries, outcomes, strict=True):
        print(f"{outcome.verdict:12} {repository}: {file} {outcome.why} {'; '.join(outcome.silent)}".rstrip())
    print(json.dumps(Counter(outcome.verdict for outcome in outcomes)))
    assert not [outcome for outcome in outcomes if outcome.verdict == "silent"]
