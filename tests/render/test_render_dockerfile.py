from __future__ import annotations

import ast
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

from conftest import GOLDEN, needs
from reprobuild import assets
from reprobuild.errors import RenderError
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import CondaPackage
from reprobuild.render import dockerfile as render_module
from reprobuild.render.dockerfile import DebianRoot, render, render_self_contained
from reprobuild.render.image_config import image_config
from reprobuild.render.own_files import image_files
from reprobuild.request.image_user import ImageUser
from support.locks import LOCK, SMALL
from support.strategies import locks

TOP = Path(__file__).resolve().parents[2]

HOSTILE = [
    "a\nRUN evil", "a\r", "a\x00", "a\u2028RUN evil", "a\u202eb", '"', 'a" B="c', "a\\", "$HOME", "${HOME}",
    "`id`", "a\x1b[0m", "\n", "a\x85",
]  # fmt: skip
"""Each breaks out of its line, or is expanded, where a value stands in double quotes."""

UNFIT_WORDS = ["", "a b", "a;b", "a|b", "a&b", "a>b", "(a)", "*", "a'b", "~a", "-a", "../a", "a/b", "{a,b}"]
"""Each is more than one plain word to a shell, or leaves its folder."""


def test_the_root_dockerfile_is_the_golden_lock_s(golden: Callable[[Path, bytes], None]) -> None:
    golden(TOP / "Dockerfile", render(LOCK).files["Dockerfile"])


def test_the_definition_for_apptainer_is_golden_text(golden: Callable[[Path, bytes], None]) -> None:
    golden(GOLDEN / "apptainer.def", render(LOCK).files["apptainer.def"])


def test_the_context_holds_these_files() -> None:
    rendered = render(LOCK)
    assert list(rendered.files) == [
        ".dockerignore",
        "Dockerfile",
        "apptainer.def",
        "reprobuild/bytecode.py",
        "reprobuild/constraints.txt",
        "reprobuild/golden.json",
        "reprobuild/kernels.py",
        "reprobuild/manifest.py",
        "reprobuild/pylock.toml",
        "reprobuild/reprobuild.pth",
        "reprobuild/reprobuild_hook.py",
        "reprobuild/requirements.txt",
        "reprobuild/selftest.py",
    ]
    assert [(a.path, a.sha256) for a in rendered.artifacts] == [
        (f"wheels/{p.wheel.filename}", p.wheel.sha256) for p in LOCK.python
    ]


def test_the_image_s_own_files_are_those_that_the_embedded_engine_takes() -> None:
    files = render(LOCK).files
    text = files["Dockerfile"].decode()
    for path, (content, mode) in image_files(LOCK).items():
        name = path.rpartition("/")[2]
        assert files[f"reprobuild/{name}"] == content
        assert f"install -D -m {mode:04o} {name} {path} " in text


def test_the_ignore_file_lets_through_all_that_the_dockerfile_takes() -> None:
    rendered = render(LOCK)
    lines = rendered.files[".dockerignore"].decode().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    tops = {path.split("/")[0] for path in rendered.files} | {
        a.path.split("/")[0] for a in rendered.artifacts
    }
    beside = {"Dockerfile", ".dockerignore", "apptainer.def"}
    assert kept == tops - beside | {render_module.DEBIAN_TAR}
    assert "*" in lines


def test_requirements_are_the_whole_lock_with_hashes() -> None:
    found = {}
    for line in render(LOCK).files["reprobuild/requirements.txt"].decode().splitlines():
        if not line.startswith("#"):
            requirement, _, digest = line.partition(" --hash=sha256:")
            found[Requirement(requirement).name] = (str(Requirement(requirement).specifier), digest)
    assert found == {p.name: (f"=={p.version}", p.wheel.sha256) for p in LOCK.python}


def parse_dockerfile(text: str) -> list[tuple[str, str]]:
    """A small reader of our own: continued lines joined, comments dropped."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(w, rest) for w, _, rest in (line.partition(" ") for line in joined.splitlines()) if w]


def pairs(rest: str) -> dict[str, str]:
    found = re.findall(r'([\w.-]+)="([^"\\$]*)"(?: |$)', rest)
    assert " ".join(f'{name}="{value}"' for name, value in found) == rest.strip()
    return dict(found)


@given(locks())
@settings(max_examples=15)
def test_a_reader_finds_the_configuration_again(lock: Lock) -> None:
    # NCCL_ALGO is the one free value of a generated lock; what it may not hold has its own tests.
    lock = replace(lock, variables={**lock.variables, "NCCL_ALGO": "it's fine"})
    steps = parse_dockerfile(render(lock).files["Dockerfile"].decode())
    config = image_config(lock)
    words = "FROM ADD FROM ENV WORKDIR COPY COPY RUN COPY RUN FROM COPY COPY ENV LABEL WORKDIR CMD"
    # A standalone Python is a second archive beside Debian's.
    assert [word for word, _ in steps] == words.replace("ADD", "ADD " * (1 + bool(lock.standalone))).split()
    assert pairs(steps[-4][1]) == dict(config.env)
    assert pairs(steps[-3][1]) == dict(config.labels)
    assert steps[-2][1] == config.workdir
    assert ast.literal_eval(steps[-1][1]) == list(config.cmd)


def test_no_address_and_no_network_stands_in_it() -> None:
    text = render(LOCK).files["Dockerfile"].decode()
    assert "://" not in text
    assert all(ref in ("scratch", "debian") for ref in re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    assert "--mount" not in text  # BuildKit's alone
    assert "--chmod" not in text
    assert "<<" not in text


def test_pip_may_look_nowhere_and_trusts_nothing() -> None:
    text = render(LOCK).files["Dockerfile"].decode()
    options = "--isolated --no-cache-dir --no-input --no-index --no-deps --no-compile --require-hashes"
    assert all(f" {option} " in text for option in options.split())
    assert "wheels/pip-24.2-py3-none-any.whl/pip " in text


def test_the_shell_reads_each_run_step() -> None:
    for word, rest in parse_dockerfile(render(LOCK).files["Dockerfile"].decode()):
        if word == "RUN":
            subprocess.run(["sh", "-n", "-c", rest], check=True)


@pytest.mark.parametrize("form", ["context", "self-contained"])
def test_hadolint_is_content(tmp_path: Path, form: str) -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        needs("hadolint")
        program = Path("hadolint")
    text = render(LOCK).files["Dockerfile"] if form == "context" else self_contained()
    (tmp_path / "Dockerfile").write_bytes(text)
    done = subprocess.run([program, tmp_path / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# --- The form that needs no context ---

DIGEST = "sha256:" + 64 * "d"
HEREDOC = re.compile(r"^COPY <<'END-OF-FILE' (\S+)\n(.*?)^END-OF-FILE\n\n", re.MULTILINE | re.DOTALL)


def self_contained(lock: Lock = LOCK, mirror: str = "https://mirror.example/debian") -> bytes:
    urls = {p.sha256: f"{mirror}/{quote(p.path, safe='/~')}" for p in lock.debian}
    return render_self_contained(lock, DebianRoot(urls=urls, digest=DIGEST))


def test_the_self_contained_form_is_golden_but_for_the_files_in_it(
    golden: Callable[[Path, bytes], None],
) -> None:
    text = HEREDOC.sub(r"COPY <<'END-OF-FILE' \1\n…\nEND-OF-FILE\n\n", self_contained().decode())
    golden(GOLDEN / "Dockerfile.self-contained", text.encode())


def test_it_holds_the_files_of_the_context_and_names_all_others_by_hash() -> None:
    text = self_contained().decode()
    held = {match[1].lstrip("/"): match[2].encode() for match in HEREDOC.finditer(text)}
    assert b"this-builder-is-too-old" in held.pop("too-old")
    assert held.pop("tmp/debian_root.py") == assets.in_image("debian_root.py")
    assert held == {p: c for p, c in render(LOCK).files.items() if p.startswith("reprobuild/")}
    added = set(re.findall(r"^ADD --checksum=sha256:(\w{64}) https://\S+ /\S+$", text, re.MULTILINE))
    assert added == {p.sha256 for p in LOCK.debian} | {p.wheel.sha256 for p in LOCK.python}
    assert text.count("\nADD ") == len(LOCK.debian) + len(LOCK.python)


def test_its_last_stages_are_those_of_the_context_form() -> None:
    """The rest is the context form, but for where files come from and that no step has a network."""
    text = self_contained().decode()
    text = text.replace("--from=files /", "").replace("--network=none ", "")
    tail = "FROM debian AS build"
    assert text.partition(tail)[2] == render(LOCK).files["Dockerfile"].decode().partition(tail)[2]


def test_no_stage_has_more_layers_than_a_builder_takes() -> None:
    many = replace(LOCK, debian=[replace(LOCK.debian[0], name=f"package{n}") for n in range(150)])
    stages = HEREDOC.sub("COPY\n", self_contained(many).decode()).split("\nFROM ")
    assert max(len(re.findall(r"^(?:ADD|COPY|RUN|WORKDIR)", stage, re.MULTILINE)) for stage in stages) <= 40
    assert sum(stage.count("\nADD ") for stage in stages) == 150 + len(LOCK.python)


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@index.example/a.whl",
        "https://index.example/$HOME/a.whl",
        "https://index.example/a.whl /etc/passwd",
        "https://index.example/a.whl\nRUN evil",
        "https://index.example/a\\",
        "file:///srv/wheels/a.whl",
    ],
)
def test_an_address_that_must_not_stand_in_it_is_refused(url: str) -> None:
    first = LOCK.python[0]
    lock = replace(LOCK, python=[replace(first, wheel=replace(first.wheel, url=url)), *LOCK.python[1:]])
    with pytest.raises(RenderError) as error:
        self_contained(lock)
    assert first.name in error.value.message
    with pytest.raises(RenderError):
        self_contained(mirror=url)


@pytest.mark.parametrize("text", ["a\nEND-OF-FILE\nRUN evil\n", "no end of line", "a\rb\n", "a\0b\n"])
def test_a_file_that_would_end_its_block_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(assets, "in_image", lambda _: text.encode())
    with pytest.raises(RenderError, match=r"debian_root\.py"):
        self_contained()


def test_a_lock_with_conda_packages_has_no_self_contained_form() -> None:
    package = CondaPackage(
        name="forge", version="1", build="0", subdir="noarch", url="https://c.example/forge-1-0.conda",
        sha256=64 * "a", md5=None, size=1, depends=(),
    )  # fmt: skip
    with pytest.raises(RenderError, match="conda"):
        self_contained(replace(LOCK, conda=[package]))


# --- Values that break out ---


def hostile(**where: Any) -> Lock:
    """The small lock with a value swapped in one place."""
    lock = SMALL
    for place, value in where.items():
        match place:
            case "name" | "python" | "suite" | "profile" | "cuda":
                lock = replace(lock, request=replace(lock.request, **{place: value}))
            case "variable":
                lock = replace(lock, variables={**lock.variables, "X": value})
            case "variable_name":
                lock = replace(lock, variables={**lock.variables, value: "1"})
            case "package" | "version":
                field = "name" if place == "package" else "version"
                lock = replace(lock, python=[replace(lock.python[0], **{field: value}), *lock.python[1:]])
            case "filename" | "sha256":
                wheel = replace(lock.python[0].wheel, **{place: value})
                lock = replace(lock, python=[replace(lock.python[0], wheel=wheel), *lock.python[1:]])
            case "pip_filename":
                pip = next(p for p in lock.python if p.name == "pip")
                others = [p for p in lock.python if p.name != "pip"]
                lock = replace(lock, python=[replace(pip, wheel=replace(pip.wheel, filename=value)), *others])
            case "debian_version":
                debian = [replace(d, version=value) if d.name == "python3.11" else d for d in lock.debian]
                lock = replace(lock, debian=debian)
            case _:
                raise AssertionError(place)
    return lock


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("place", ["name", "suite", "variable"])
def test_a_value_that_breaks_out_of_its_line_is_refused_by_name(place: str, value: str) -> None:
    with pytest.raises(RenderError) as error:
        render(hostile(**{place: value}))
    assert repr(value)[1:-1][:4] in error.value.message
    assert "line" in error.value.message
    assert error.value.hint


@pytest.mark.parametrize("value", [*HOSTILE, *UNFIT_WORDS])
@pytest.mark.parametrize(
    "place", ["package", "version", "filename", "pip_filename", "sha256", "python", "variable_name"]
)
def test_a_word_that_a_shell_or_an_installer_reads_otherwise_is_refused(place: str, value: str) -> None:
    with pytest.raises(RenderError):
        render(hostile(**{place: value}))


def test_the_message_names_value_and_place() -> None:
    with pytest.raises(RenderError) as error:
        render(hostile(variable="a$b"))
    assert error.value.message.startswith("variable X: 'a$b' is not text without")


PLAIN = re.compile(r'[^"\\$`]*')


@given(st.text(max_size=20))
@example("it's <fine> & 100% é | #")
@settings(max_examples=60)
def test_a_variable_is_rendered_as_it_is_or_refused(value: str) -> None:
    lock = hostile(variable=value)
    if PLAIN.fullmatch(value) and value.isprintable():
        text = render(lock).files["Dockerfile"].decode()
        assert text.count(f'    X="{value}"\n') == 1
        assert [word for word, _ in parse_dockerfile(text)].count("RUN") == 2
    else:
        with pytest.raises(RenderError, match="variable X"):
            render(lock)


STRUCTURE = [word for word, _ in parse_dockerfile(render(SMALL).files["Dockerfile"].decode())]
PLACES = ["name", "suite", "variable", "variable_name", "package", "version", "filename", "debian_version"]


@given(st.sampled_from(PLACES), st.text(max_size=12) | st.sampled_from([*HOSTILE, *UNFIT_WORDS]))
@settings(max_examples=100)
def test_no_value_anywhere_changes_the_structure(place: str, value: str) -> None:
    try:
        rendered = render(hostile(**{place: value}))
    except (RenderError, KeyError):  # KeyError: a lock without torch, which no parse gives
        return
    assert [word for word, _ in parse_dockerfile(rendered.files["Dockerfile"].decode())] == STRUCTURE
    assert len(rendered.files["reprobuild/requirements.txt"].splitlines()) == 1 + len(SMALL.python)
    assert all(re.fullmatch(r"wheels/[^./\s][^/\s]*", artifact.path) for artifact in rendered.artifacts)


def test_rendering_knows_no_machine(tmp_path: Path) -> None:
    code = (
        "import sys, hashlib\n"
        "from reprobuild.lock.reader import parse_lock; from reprobuild.render.dockerfile import render\n"
        "files = render(parse_lock(open(sys.argv[1]).read(), 'lock')).files;"
        "print(hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest())"
    )
    lock = tmp_path / "lock.toml"
    lock.write_text(LOCK.dump())
    found = set()
    for seed, zone, language in (("1", "Asia/Tokyo", "C"), ("2", "America/Lima", "C.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": language}
        folder = tmp_path / seed
        folder.mkdir(mode=stat.S_IRWXU)
        command = [sys.executable, "-c", code, str(lock)]
        found.add(subprocess.run(command, env=env, cwd=folder, capture_output=True, check=True).stdout)
    assert len(found) == 1


def test_what_has_priority_is_installed_once_more_after_the_others() -> None:
    name = SMALL.python[0].name
    rendered = render(replace(SMALL, request=replace(SMALL.request, file_priority=(name,))))
    text = rendered.files["Dockerfile"].decode()
    assert "COPY reprobuild/requirements.txt reprobuild/priority.txt ./" in text
    assert re.search(
        r"--requirement requirements\.txt \\\n && .*--force-reinstall --requirement priority\.txt\n",
        text,
        re.DOTALL,
    )
    assert rendered.files["reprobuild/priority.txt"].splitlines()[1].startswith(f"{name}==".encode())


def test_a_user_is_in_the_dockerfile_and_in_the_configuration() -> None:
    lock = replace(LOCK, request=replace(LOCK.request, user=ImageUser("app", 1000)))
    text = render(lock).files["Dockerfile"].decode()
    assert "\nUSER 1000:1000\n" in text
    assert "COPY --from=build --chown=1000:1000 /build/user/home/ /home/app/\n" in text
    assert 'echo "app:*:1000:1000::/home/app:/bin/bash" | cat /etc/passwd - > /build/user/etc/passwd' in text
    assert image_config(lock).workdir == "/home/app"


@pytest.mark.parametrize("name", [each for each in UNFIT_WORDS if each] + HOSTILE)
def test_a_user_s_name_cannot_break_out_of_its_line(name: str) -> None:
    with pytest.raises(RenderError):
        render(replace(LOCK, request=replace(LOCK.request, user=ImageUser(name, 1000))))
