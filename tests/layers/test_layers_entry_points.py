"""Scripts of entry points: as pip writes them, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.layers.entry_points import script_template
from support.wheel_contents import contents
from support.wheels import toy_pip, wheel_bytes, write_wheel


def test_a_script_reads_as_the_locked_pip_writes_it(tmp_path: Path) -> None:
    template = script_template(write_wheel(tmp_path, "pip", "26.0", toy_pip()))
    wheel = write_wheel(tmp_path, "a", "1", _entry("go = a.b : C.run [x]"))
    assert contents(wheel, "a", template=template)["opt/venv/bin/go"] == (
        0o755,
        (
            b"#!/opt/venv/bin/python\nimport sys\nfrom a.b import C\n"
            b"if __name__ == '__main__':\n    sys.exit(C.run())\n"
        ),
    )


@pytest.mark.parametrize("form", ["{!r}", "clean({!r})", "textwrap.dedent({!r}).lstrip()"])
@pytest.mark.parametrize("name", ["script_template", "_TEMPLATE: str", "self.text"])
def test_a_pip_that_keeps_its_template_elsewhere(tmp_path: Path, name: str, form: str) -> None:
    text = "import sys\nfrom %(module)s import %(import_name)s\nsys.exit(%(func)s())\n"
    indented = "\n" + "".join(f"    {line}\n" for line in text.splitlines())
    source = f"HELP = 'of %(module)s'\ndef make(self):\n    {name} = {form.format(indented)}\n"
    files = {"pip/_internal/operations/install/wheel.py": source}
    assert script_template(write_wheel(tmp_path, "pip", "99", wheel_bytes("pip", "99", files))) == text


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"pip/_vendor/distlib/scripts.py": "OTHER = 1\n"},
        {"pip/_internal/operations/install/wheel.py": "script_template = make()\n"},
        {"pip/_internal/operations/install/wheel.py": "def (:\n"},
        {"pip/_internal/operations/install/wheel.py": 'T = "%(module)s %(import_name)s %(func)s"\n'},
        {"pip/_internal/operations/install/wheel.py": 'T = "%(module)s.%(import_name)s(%(func)s(%(new)s))"'},
    ],
)
def test_a_pip_without_a_template_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(BuildError, match="pip"):
        script_template(write_wheel(tmp_path, "pip", "99", wheel_bytes("pip", "99", files)))


def _entry(line: str, group: str = "console_scripts") -> bytes:
    return wheel_bytes("a", "1", {"a.py": ""}, entry_points=f"[{group}]\n{line}\n")


@pytest.mark.parametrize("group", ["console_scripts", "gui_scripts"])
@pytest.mark.parametrize(
    "line",
    [
        *("../../usr/bin/ls = a:main", "/bin/ls = a:main", ". = a:main", " = a:main", "x = a", "x = :main"),
        *("x = a:main; import os", "x = a b:main", "x = a:", "x/y = a:main", "x y = a:main"),
    ],
)
def test_a_hostile_entry_point_is_refused(tmp_path: Path, line: str, group: str) -> None:
    with pytest.raises(BuildError, match="a: the"):
        contents(write_wheel(tmp_path, "a", "1", _entry(line, group)), "a")


def test_an_entry_point_is_not_called_python(tmp_path: Path) -> None:
    info = {"entry_points.txt": "[console_scripts]\npython3 = a:main\n"}
    with pytest.raises(BuildError, match=r"a: has the file '/opt/venv/bin/python3', which is"):
        contents(write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {}, info=info)), "a")


@pytest.mark.parametrize("script", ["../../x", "a/b", "/etc/x", "..", "a\nb", "a b"])
def test_an_entry_point_leads_nowhere(tmp_path: Path, script: str) -> None:
    info = {"entry_points.txt": f"[console_scripts]\n{script} = a:main\n"}
    with pytest.raises(BuildError):
        contents(write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {}, info=info)), "a")
