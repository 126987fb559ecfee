"""What a TAB gives, in a real Bash; zsh's and fish's scripts ask the same program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.cli import run_command_line
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.image_documents import documents
from reprobuild.oci.store import ImageStore
from reprobuild.render.image_config import image_config
from support.locks import LOCK

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands"]

PROGRAM = Path(sys.executable).with_name("reprobuild")
NAMES = ("reprobuild/torch:2.4.1-cu121-py311", "reprobuild/torch:2.5.0-cpu-py311", "team/x:1")


@pytest.fixture
def place(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with requests, a lock and a file; and a home with images."""
    monkeypatch.setenv("REPROBUILD_HOME", str(tmp_path / "home"))
    store = ImageStore(Host(Home(tmp_path / "home"), Console(quiet=True)))
    digest = store.add(documents(LOCK, image_config(LOCK), []))
    for name in NAMES:
        store.name(digest, name)
    (folder / "envs").mkdir()
    for name in ("frames.toml", "pylock.frames.toml", "speech.toml", "bad\x1b[2J.toml"):
        (folder / "envs" / name).touch()
    (folder / "torch.tar").touch()
    (folder / "report.json").touch()
    return folder


def typed(line: str, place: Path, call: Call) -> list[str]:
    """Type a line in an interactive Bash, press TAB, and return what our function leaves to offer."""
    script = place.parent / "completion.bash"
    script.write_text(call("completion", "bash").out)
    said = place.parent / "said"
    rc = place.parent / "rc"
    rc.write_text(
        f"source {script}\nexec 3>{said}\n"
        "_show() { _reprobuild_completion reprobuild; printf '%s\\n' \"${COMPREPLY[@]}\" >&3; }\n"
        "complete -F _show reprobuild\n"
    )
    env = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "TERM": "dumb"}
    command = ["bash", "--noprofile", "--rcfile", str(rc), "-i"]
    typing = f"{line}\t\x15exit\n"
    subprocess.run(command, input=typing, capture_output=True, text=True, env=env, cwd=place, check=True)
    return sorted({line for line in said.read_text().splitlines() if line})


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("reprobuild im", ["image", "images"]),
        # Bash takes the colon for the end of a word, and puts what is offered behind it.
        ("reprobuild run reprobuild/torch:", ["2.4.1-cu121-py311", "2.5.0-cpu-py311"]),
        ("reprobuild remove 'team/x:1' t", ["team/x:1"]),
    ],
)
def test_a_tab_in_bash(line: str, offered: list[str], place: Path, call: Call) -> None:
    assert typed(line, place, call) == offered


FILES = ["file,"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("image --gp", ["--gpu"]),
        ("image --gpu ", ["auto", "off", "require"]),
        ("image --gpu=a", ["auto"]),
        ("lock --cuda 12.1 --profile p", ["portable"]),
        ("lock --platform linux/a", ["linux/amd64", "linux/arm64"]),
        ("lock ", ["frames", "speech"]),
        ("lock e", ["envs/frames.toml", "envs/speech.toml"]),
        ("image envs/", ["envs/frames.toml", "envs/pylock.frames.toml", "envs/speech.toml"]),
        ("diff envs/p", ["envs/pylock.frames.toml"]),
        ("doctor t", ["team/x:1"]),
        ("run ", [*NAMES]),
        ("check team/x:", ["1"]),
        ("check torch.t", ["file,torch.t"]),
        ("lock --from ", FILES),
        ("export team/x:1 ", FILES),
        ("render -o ", ["dir,"]),
        ("lock --from-image re", [*NAMES[:2]]),
        ("selftest --against ", FILES),
    ],
)
def test_what_is_offered(
    line: str,
    offered: list[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_REPROBUILD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", f"reprobuild {line}")
    monkeypatch.setenv("COMP_BREAKS", " \"'@><=;|&(:")
    with pytest.raises(SystemExit):
        run_command_line()
    out, err = capsys.readouterr()
    assert err == ""
    assert sorted(each.removeprefix("plain,") for each in out.splitlines()) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_given_whole_words(shell: str, place: Path) -> None:
    env = {
        **os.environ,
        "_REPROBUILD_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "reprobuild run reprobuild/torch:2.4",
    }
    env["COMP_CWORD"] = "reprobuild/torch:2.4" if shell == "fish" else "2"
    done = subprocess.run([PROGRAM], env=env, cwd=place, capture_output=True, text=True, check=True)
    assert NAMES[0] in done.stdout.replace(",", "\n").splitlines()
    assert "2.5.0" not in done.stdout


def test_a_home_that_cannot_be_read_offers_nothing_and_says_nothing(place: Path, tmp_path: Path) -> None:
    for name in ("index.json", "index.sealed"):
        (tmp_path / "home" / "oci" / name).write_text("broken")
    env = {
        **os.environ,
        "_REPROBUILD_COMPLETE": "bash_complete",
        "COMP_LINE": "reprobuild run ",
        "COMP_BREAKS": ":",
    }
    done = subprocess.run([PROGRAM], env=env, cwd=place, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")
