"""The shape of the code, judged on its syntax trees."""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
PACKAGE = TOP / "src" / "reprobuild"
IN_IMAGE = sorted((PACKAGE / "in_image").rglob("*.py"))
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path not in IN_IMAGE)

FLOORS = (
    ("cli",),
    ("pipeline", "bundle", "imports"),
    ("verify", "resolve"),
    ("engines", "sources"),
    ("layers",),
    ("fetch",),
    ("oci", "render", "twice"),
    ("lock", "selftest", "net"),
    ("request", "host"),
    ("errors", "assets", "programs", "reprobuild"),
)
"""The order of imports: a part imports only from floors below its own, not from its own."""

ARROWS = 134
"""Pairs of packages of which one imports the other, at most."""

FLOOR = {part: number for number, floor in enumerate(FLOORS) for part in floor}
FLOOR["in_image"] = len(FLOORS)  # below all
SHARED = {
    PACKAGE / "in_image" / "debian_root.py",
    PACKAGE / "in_image" / "kernels.py",
    PACKAGE / "in_image" / "manifest.py",
    PACKAGE / "in_image" / "selftest" / "linkage.py",
    PACKAGE / "in_image" / "selftest" / "names.py",
}
"""What the host imports of in_image: one rule for both sides stands there."""

PURE = {
    "assets",
    "errors",
    "in_image",
    "lock",
    "render",
    "reprobuild",
    "request",
}
"""Functions of their arguments and of the files that ship with reprobuild."""

PROGRAMS = sorted((PACKAGE / "programs").glob("[!_]*.py"))
"""Started by process.py or in a sandbox as programs of their own; they import nothing of ours."""

_CHECKS = "in_image/test_selftest_program.py"  # runs all of them under torch; sabotage.py breaks each
_RECORDER = "twice/test_twice_programs.py"  # runs programs under the whole recorder
TESTED_AS_A_WHOLE = {
    "in_image/twice/given_values.py": "twice/test_twice_line_experiments.py",
    "twice/record_fields.py": "twice/test_twice_records.py",
    "twice/recorded_run.py": "twice/test_twice_runs.py",
    "twice/search.py": "twice/test_twice_runs.py",
    "bundle/contents.py": "bundle/test_bundle_write.py",
    "bundle/own_wheel.py": "bundle/test_bundle_write.py",
    "bundle/rehearse.py": "bundle/test_bundle_write.py",
    "cli/build_options.py": "cli/test_cli_lock.py",
    "cli/measure_drift.py": "twice/test_twice_drift.py",
    "cli/receipts.py": "real/test_real_receipt.py",
    "cli/twice.py": "real/test_real_twice.py",
    "engines/container_twice.py": "engines/test_engines_contract.py",
    "engines/docker_twice.py": "engines/test_engines_contract.py",
    "engines/podman_options.py": "engines/test_engines_gpu.py",
    "engines/podman_twice.py": "engines/test_engines_contract.py",
    "engines/twice_mounts.py": "engines/test_engines_contract.py",
    "verify/evidence/create_documents.py": "cli/test_cli_verify.py",
    "in_image/twice/__init__.py": "twice/test_twice_runs.py",
    "in_image/selftest/batches.py": _CHECKS,
    "in_image/selftest/data.py": _CHECKS,
    "in_image/selftest/documented.py": _CHECKS,
    "in_image/selftest/exact.py": _CHECKS,
    "in_image/selftest/flags.py": _CHECKS,
    "in_image/selftest/functions.py": "in_image/test_in_image_selftest_public.py",
    "in_image/selftest/gradients.py": _CHECKS,
    "in_image/selftest/installed.py": _CHECKS,
    "in_image/selftest/operations.py": _CHECKS,
    "in_image/selftest/seeds.py": _CHECKS,
    "in_image/twice/batch.py": "twice/test_twice_batch.py",
    "in_image/twice/batch_calls.py": "twice/test_twice_batch.py",
    "in_image/twice/batch_rows.py": "twice/test_twice_batch.py",
    "in_image/twice/batch_trace.py": "twice/test_twice_batch.py",
    "in_image/twice/digests.py": _RECORDER,
    "in_image/twice/drawn_names.py": "twice/test_twice_text_differences.py",
    "in_image/twice/evidence.py": _RECORDER,
    "in_image/twice/handovers.py": "twice/test_twice_handovers.py",
    "in_image/twice/serializers.py": "twice/test_twice_text_differences.py",
    "in_image/twice/sources.py": _RECORDER,
    "in_image/twice/steps.py": _RECORDER,
    "in_image/twice/watching.py": _RECORDER,
    "in_image/twice/writing.py": _RECORDER,
    "programs/build_wheel.py": "sources/test_sources_sandboxed.py",
    "programs/solve_conda.py": "resolve/test_resolve_conda_solver.py",
    "programs/user_namespace.py": "host/test_host_sandbox.py",
    "resolve/image_python.py": "imports/test_imports_target_system.py",
    "resolve/cuda_linkage.py": "resolve/test_resolve_abi_rules.py",
    "verify/context.py": "verify/test_verify_commands.py",
    "verify/find_evidence.py": "cli/test_cli_verify.py",
    "verify/required.py": "cli/test_cli_verify.py",
}
"""Modules that run only as a part of something larger, and the tests of that."""

STARTS = re.compile(r"os\.(system|popen|fork|forkpty|exec\w+|spawn\w+|posix_spawnp?)")
SPEAKS = re.compile(r"print|exit|quit|sys\.exit|os\._exit|SystemExit|sys\.stdout\.(buffer\.)?write\w*|input")


def part_of(path: Path) -> str:
    """``layers`` for layers/tar.py, ``fetch`` for fetch.py, ``reprobuild`` for the package's __init__.py."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "reprobuild" if first == "__init__" else first


@functools.cache
def imports(path: Path) -> frozenset[Path]:
    """The modules of reprobuild that a module imports, at its top or anywhere else."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = ["reprobuild", *path.relative_to(PACKAGE).parts[:-1]]
            base = folder[: len(folder) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        found |= {file for name in names if name[0] == "reprobuild" and (file := _file(name[1:]))}
    return frozenset(found - {path})


def _file(name: list[str]) -> Path | None:
    for end in (len(name), len(name) - 1):
        if end < 0:
            continue
        place = PACKAGE.joinpath(*name[:end])
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def names_in(path: Path) -> Iterator[tuple[str, int]]:
    """Every dotted name that a module speaks of, and every module it imports, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def test_imports_are_found() -> None:
    assert {part_of(path) for path in imports(PACKAGE / "render" / "dockerfile.py")} >= {
        "assets",
        "errors",
        "lock",
    }


def test_imports_make_no_circle() -> None:
    TopologicalSorter({path: imports(path) for path in MODULES}).prepare()


def test_packages_import_no_more_others_than_before() -> None:
    """Lower the number when it falls. A new arrow needs another to go."""
    arrows = {(part_of(path), part_of(other)) for path in MODULES for other in imports(path)}
    assert len({(mine, other) for mine, other in arrows if mine != other}) <= ARROWS


def test_every_part_has_a_floor() -> None:
    assert {part_of(path) for path in MODULES} - {"__main__"} == set(FLOOR) - {"in_image"}


def test_the_map_in_the_docs_is_this_order() -> None:
    page = (TOP / "docs" / "architecture.md").read_text()
    block = page.partition("## Module map")[2].partition("```text\n")[2].partition("```")[0]
    drawn = re.findall(r"^  ([a-z_]+)(/|\.py) ", block, re.MULTILINE)
    order = [part for floor in FLOORS for part in floor if part != "reprobuild"]
    assert [name for name, _ in drawn] == [*order, "in_image"]
    for name, end in drawn:
        assert (PACKAGE / f"{name}{end}").exists()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    mine = part_of(path)
    if mine == "__main__":
        return  # above everything: it starts the command line
    above = {
        other
        for other in {part_of(other) for other in imports(path)} - {mine}
        if FLOOR.get(other, -1) <= FLOOR[mine]
    }
    assert not above, f"{mine} is not above them"
    assert {other for other in imports(path) if part_of(other) == "in_image"} <= SHARED
    if mine in PURE:
        assert {part_of(other) for other in imports(path)} <= PURE, "pure: no process, no network, no store"


@pytest.mark.parametrize("path", IN_IMAGE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_runs_in_the_image_stands_alone(path: Path) -> None:
    modules = {
        each for each in IN_IMAGE if path.parent.name in ("selftest", "twice") and each.parent == path.parent
    }
    # The self-test's modules become one file, and the recorder of `twice` is a package of its own, so
    # each may
    # import the others; all else is copied as it is.
    assert imports(path) <= (modules if path in modules else set())
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert {node.level for node in found} <= ({0, 1} if path in modules else {0})


def test_the_self_test_s_imports_make_no_circle() -> None:
    # `from . import name` is how the command line has the checks registered.
    TopologicalSorter({path: imports(path) for path in IN_IMAGE}).prepare()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_one_module_starts_processes_and_one_prints_and_exits(path: Path) -> None:
    names = list(names_in(path))
    if path in PROGRAMS:
        assert not imports(path)
        return
    if path != PACKAGE / "host" / "process.py":
        assert not [n for n in names if n[0].split(".")[0] == "subprocess" or STARTS.fullmatch(n[0])]
    if part_of(path) != "cli" and path.name != "__main__.py":
        assert not [n for n in names if SPEAKS.fullmatch(n[0])]


def test_modules_stay_small() -> None:
    # A place to look, not a law: one thought of 400 lines is better than two halves that pass eight names.
    long = {
        str(path.relative_to(PACKAGE)): lines
        for path in [*MODULES, *IN_IMAGE]
        if (lines := len(path.read_text().splitlines())) >= 450
    }
    assert not long


def committed() -> Iterator[Path]:
    """The text files of a checkout that belong to the project; not the locks that its user has made there."""
    # An exclusion is for what git does not track: a lock that is committed is seen.
    untracked = ["--others", "--exclude-standard", "--exclude=/envs/pylock.*.toml"]
    if (TOP / ".git").exists() and shutil.which("git"):
        command = ["git", "-c", f"safe.directory={TOP}", "ls-files", "-z", "--cached", *untracked]
        listed = subprocess.run(command, cwd=TOP, capture_output=True, check=True).stdout
        yield from (path for name in listed.decode().split("\0") if name and (path := TOP / name).is_file())
        return
    hidden = {".ci", ".gitignore", ".github"}
    for top in TOP.iterdir():
        if (top.name.startswith(".") and top.name not in hidden) or top.name in ("build", "dist"):
            continue
        for path in [top] if top.is_file() else top.rglob("*"):
            parts = path.relative_to(TOP).parts
            if path.is_file() and not any(p == "__pycache__" or p.startswith(".mypy") for p in parts):
                yield path


_BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.While,
    ast.Try,
    ast.With,
    ast.BoolOp,
    ast.Match,
    ast.comprehension,
)


def has_logic(path: Path) -> bool:
    """Whether a module is more than values, types and calls: its functions have four branches or more."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return sum(isinstance(node, _BRANCHES) for each in functions for node in ast.walk(each)) >= 4


def test_the_tests_of_a_module_are_found_by_its_name() -> None:
    tests = TOP / "tests"
    own = {}
    for path in [*MODULES, *IN_IMAGE]:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
        folder = tests / parts[0] if path.parent != PACKAGE else tests
        own[str(path.relative_to(PACKAGE))] = folder / f"test_{'_'.join(parts)}.py"
    without = {name for name, test in own.items() if has_logic(PACKAGE / name) and not test.is_file()}
    assert sorted(without - set(TESTED_AS_A_WHOLE)) == []
    assert all((tests / test).is_file() for test in TESTED_AS_A_WHOLE.values())


def test_no_registry_and_no_path_of_a_machine_is_named() -> None:
    # In pieces, so that this file is not found itself. docker dot io alone is a package of Debian's.
    hosts = [
        ("py", "pi.org"), ("python", "hosted.org"), ("download.", "pytorch.org"), ("pypi.", "nvidia.com"),
        ("ana", "conda.org"), ("ana", "conda.com"), ("deb.", "debian.org"), ("security.", "debian.org"),
        ("snapshot.", "debian.org"), ("ftp.", "debian.org"), ("gh", "cr.io"), ("nv", "cr.io"),
        ("qu", "ay.io"), ("g", "cr.io"), ("registry-1.", "docker.io"), ("index.", "docker.io"),
        ("hub.", "docker.com"), ("prefix", ".dev"), ("registry.", "npmjs.org"),
        ("developer.download.", "nvidia.com"),
    ]  # fmt: skip
    places = [("/wo", "rk/"), ("/tm", "p/v/"), ("/opt/", "pypi"), ("/ro", "ot/")]
    pieces = [r"(?<![\w-])" + re.escape("".join(p)) for p in hosts] + [re.escape("".join(p)) for p in places]
    bad = re.compile("|".join(pieces), re.IGNORECASE)
    found = [
        f"{path.relative_to(TOP)}:{number}: {match[0]}"
        for path in committed()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (match := bad.search(line))
    ]
    assert not found


def test_no_test_module_is_imported() -> None:
    # What two of them need is in tests/support.
    imported = re.compile(r"^\s*(?:from|import) test_\w+", re.MULTILINE)
    assert not {path.name for path in (TOP / "tests").rglob("*.py") if imported.search(path.read_text())}


def test_a_plugin_of_the_tests_has_fixtures_of_its_own_names_and_none_that_is_automatic() -> None:
    """They count for the whole session, also for modules that do not name the plugin."""
    named = {
        plugin
        for path in sorted((TOP / "tests").rglob("*.py"))
        for names in re.findall(r"^pytest_plugins = \[(.*?)\]", path.read_text(), re.MULTILINE | re.DOTALL)
        for plugin in re.findall(r'"support\.(\w+)"', names)
    }
    assert named
    found = Counter[str]()
    for plugin in named:
        for node in ast.parse((TOP / f"tests/support/{plugin}.py").read_text()).body:
            marks = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
            if any("pytest.fixture" in mark for mark in marks):
                assert not any("autouse" in mark for mark in marks), (plugin, node)
                found[getattr(node, "name", "")] += 1
    assert [name for name, count in found.items() if count > 1] == []
