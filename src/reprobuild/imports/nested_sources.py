"""``tool.uv.sources`` of the folders that a uv project is made of, such as the members of its workspace.

uv gives the dependencies of each such folder the sources that it names itself; what the folder's build says
of its requirements has none of them:
https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import RequestError
from ..request.toml_reader import table_in
from .common import load_toml, requirement_of
from .direct_sources import Stated, UvSources
from .indexes import NamedIndexes
from .project_files import read_text
from .setup_files import same_extra
from .uv_settings import with_settings

_MOST_FOLDERS = 500


def of_folders(
    requirements: Sequence[Requirement], file: Path, indexes: NamedIndexes, markers: Mapping[str, str]
) -> tuple[list[Requirement], list[str]]:
    """Return what folders among requirements require from an address, and a line for each source that counts.

    ``file`` is that of the project itself, which is not read again. Raises `RequestError`.
    """
    found: list[Requirement] = []
    lines: list[str] = []
    seen = {file.absolute().parent.resolve()}
    todo = [each for each in requirements if each.url is not None and each.url.startswith("file:")]
    while todo:
        asked = todo.pop(0)
        folder = Path(unquote(urlsplit(asked.url or "").path)).resolve()
        project = folder / "pyproject.toml"
        if folder in seen or not project.is_file():
            continue
        seen.add(folder)
        if len(seen) > _MOST_FOLDERS:
            raise RequestError(f"{file}: requires more than {_MOST_FOLDERS} folders, by way of each other")
        sources, stated = _read(project, asked, indexes, markers)
        for line in stated:
            placed = sources.placed(line)
            if placed.url is not None and placed.url != Requirement(line.text).url:
                lines.append(f"{project}: {placed.name} is from {placed.url}")
                found.append(placed)
                todo += [placed] if placed.url.startswith("file:") else []
        lines += sources.applied
    return found, lines


def _read(
    project: Path, asked: Requirement, indexes: NamedIndexes, markers: Mapping[str, str]
) -> tuple[UvSources, list[Stated]]:
    data = load_toml(read_text(project), str(project))
    own, (uv, _) = table_in(data, "project"), with_settings(table_in(table_in(data, "tool"), "uv"), project)
    optional = table_in(own, "optional-dependencies")
    texts: list[tuple[str, str | None]] = [(text, None) for text in _texts(own.get("dependencies"))]
    for extra in sorted(asked.extras):
        name = same_extra(extra, optional)
        texts += [(text, name) for text in _texts(optional.get(name))] if name is not None else []
    named = {canonicalize_name(str(name)) for name in table_in(uv, "sources")}
    stated = [Stated(text, str(project), extra) for text, extra in texts]
    sources = UvSources(uv, project, indexes, markers, of_dependency=True)
    return sources, [
        each for each in stated if canonicalize_name(requirement_of(each.text, each.place).name) in named
    ]


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
