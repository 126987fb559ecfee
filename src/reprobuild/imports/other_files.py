"""Import inline metadata of scripts and python_env.yaml of MLflow; name the export tool for other files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import RequestError
from ..request.yaml_reader import load_yaml
from .common import Imported, expect_texts, load_toml, minor_of
from .project_files import read_text
from .pyproject import read_project
from .requirements import imported_lines

PYTHON_ENV = ("python_env.yaml", "python_env.yml")
_EXPORTS = (
    (r"pixi\.(lock|toml)", "pixi", "`pixi workspace export conda-environment environment.yml`"),
    (r".+\.py\.lock", "uv", "`uv export --script SCRIPT.py --format pylock.toml -o pylock.SCRIPT.toml`"),
    (r"Pipfile", "Pipenv", "`pipenv lock`, and import Pipfile.lock"),
    (
        r"(.+\.)?(Docker|Container)file(\..+)?",
        "Docker or Podman",
        "import the requirements file that it installs, or what its image has: `--from-image docker:NAME`",
    ),
    (r"pdm\.toml|poetry\.toml|uv\.toml", "a project", "import the pyproject.toml beside it"),
    (
        r"bentofile\.ya?ml",
        "BentoML",
        "import the file that its python.requirements_txt names, or write its python.packages into one",
    ),
    (r"cog\.ya?ml", "Cog", "import the file that its build.python_requirements names"),
    (r"MLproject", "MLflow", "import the python_env.yaml or conda.yaml that it names"),
    (r"apt\.txt", "repo2docker", "give each Debian package in it with --apt"),
    (
        r"runtime\.txt",
        "a host of apps",
        "it names a Python, which --python gives; import the requirements.txt beside it",
    ),
    (r"(docker-)?compose\.ya?ml", "Docker Compose", "import the requirements file that its image installs"),
    (r".*conda.*\.lock|explicit.*\.lock", "conda-lock", "`conda-lock -k lock`, and import conda-lock.yml"),
    (r".+\.lock", "Pex or Pants", "`pex3 lock export LOCK > requirements.txt`"),
)
_DEBIAN = ("packages.txt", "apt.txt")
"""Of Hugging Face Spaces and Streamlit, and of repo2docker."""


def read_script(file: Path, hosts: Collection[str], python: str | None) -> Imported | None:
    """Read a Python script's inline metadata (PEP 723); None if it has none. Raises `RequestError`.

    https://packaging.python.org/en/latest/specifications/inline-script-metadata/
    """
    blocks = [*_blocks(read_text(file).split("\n"))]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise RequestError(f"{file}: has {len(blocks)} blocks `# /// script`: expected one")
    data = load_toml("".join(f"{line[2:]}\n" for line in blocks[0]), str(file))
    keys = ("dependencies", "requires-python")
    project = {"name": file.stem, **{key: data[key] for key in keys if key in data}}
    found = read_project({"project": project, "tool": data.get("tool", {})}, file, (), (), hosts, python)
    more = [f"{file}: {key} is ignored: unknown in a script" for key in data if key not in (*keys, "tool")]
    return replace(found, ignored=(*found.ignored, *more))


def _blocks(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the lines of each block, each looked at once."""
    begun: int | None = None
    for number, line in enumerate(lines):
        marker = line.rstrip(" \t")
        if begun is not None and marker == "# ///" and number > begun + 1:
            yield lines[begun + 1 : number]
            begun = None
        elif line != "#" and not line.startswith("# "):
            begun = None
        elif begun is None and marker == "# /// script":
            begun = number


def read_python_env(file: Path, hosts: Collection[str]) -> Imported:
    """Read MLflow's python_env.yaml. Raises `RequestError`.

    https://mlflow.org/docs/latest/ml/projects/#virtualenv-environment
    """
    try:
        data = load_yaml(read_text(file))
    except ValueError as error:
        raise RequestError(f"{file}: not valid YAML: {error}") from None
    lines = data.get("dependencies") if isinstance(data, dict) else None
    texts = expect_texts(lines or None, f"{file}: dependencies", "requirements")
    found = imported_lines(texts, file, hosts)
    version = str(data.get("python", ""))
    if not re.fullmatch(r"3\.\d+(\.\d+)?", version):
        raise RequestError(f"{file}: python: {version!r} is not a version")
    return Imported(
        origin=str(file),
        name=found.name,
        requirements=found.requirements,
        constraints=found.constraints,
        hashes=found.hashes,
        python=minor_of(f"=={version}"),
        index=found.index,
        cuda=found.cuda,
        settings=found.settings,
        ignored=found.ignored
        + tuple(
            f"{file}: {key} is ignored: nothing is built with it"
            for key in data
            if key not in ("dependencies", "python")
        ),
    )


def refuse_others(file: Path) -> None:
    """Raise `RequestError` for a file of another tool whose suffix is that of a file that can be imported."""
    if file.name == _DEBIAN[0] and file.with_name("requirements.txt").is_file():
        names = _debian_packages(file) or ["NAME"]
        raise RequestError(
            f"{file}: lists Debian packages, beside requirements.txt",
            hint=f"import that, with {' '.join(f'--apt {name}' for name in names)}; a list of Python "
            "packages needs another name",
        )
    if file.suffix in (".yml", ".yaml", ".txt") and (how := how_to_export(file)) is not None:
        raise RequestError(f"{file}: not a file that can be imported", hint=how)


def lines_on_debian(file: Path) -> Iterator[str]:
    """Yield a line for a list of Debian packages beside a requirements.txt, which its host installs, too.

    https://huggingface.co/docs/hub/spaces-dependencies, https://repo2docker.readthedocs.io
    """
    for name in _DEBIAN if file.name == "requirements.txt" else ():
        beside = file.with_name(name)
        if beside.is_file() and (packages := _debian_packages(beside)):
            options = " ".join(f"--apt {each}" for each in packages)
            yield f"{beside}: lists Debian packages, which are not taken: give {options}"


def _debian_packages(file: Path) -> list[str]:
    """Return the packages that a file lists; empty if it is not a list of Debian packages."""
    try:
        lines = [line.partition("#")[0].strip() for line in read_text(file).splitlines()]
    except RequestError:
        return []  # it is not what is imported
    names = [name for line in lines for name in line.split()]
    return names if all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in names) else []


def how_to_export(file: Path) -> str | None:
    """Return which tool has written a file that is not read, and how it exports one that is."""
    for form, tool, command in _EXPORTS:
        if re.fullmatch(form, file.name):
            return f"it is a file of {tool}: {command}"
    return None
