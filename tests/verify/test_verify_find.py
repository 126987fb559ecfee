from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import HostError, ImageError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.file_tree import ImageTree
from reprobuild.verify import find
from reprobuild.verify.find import find_image, is_file, parent_manifest, tree_of
from support.images import PACK, Entry, layer, layout

LABELS = {"dev.reprobuild.lock": "sha256:0", "dev.reprobuild.version": "1"}
MANIFEST = "opt/reprobuild/manifest.tsv"


def found(tmp_path: Path, *entries: Entry | str) -> bytes | None:
    """The manifest of the image in the embedded store that a derived one starts from; it can run nothing."""
    layers = [PACK["zstd"](layer("bin/")), PACK["zstd"](layer(*entries))]
    layout(tmp_path / "home/oci", {"team/x:1": (layers, {"Labels": LABELS})})
    host = Host(Home(tmp_path / "home"), Console(quiet=True))
    return parent_manifest(ImageTree({}, {"Labels": LABELS}), None, host)


def test_the_parent_s_manifest_is_read_and_nothing_of_it_run(tmp_path: Path) -> None:
    assert found(tmp_path, Entry(path=MANIFEST, content=b"1")) == b"1"
    assert not (tmp_path / "home/roots").exists()


def test_a_parent_without_one(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"has no /opt/reprobuild/manifest\.tsv"):
        found(tmp_path, "opt/")


@pytest.mark.parametrize(
    "name",
    [
        *("registry.example/team/torch:1", "Registry.example/team/torch", "localhost/torch", "team/torch:1"),
        *("torch:1", "team/torch", "frames", "abcdef1", f"localhost/torch@sha256:{'0' * 64}"),
    ],
)
def test_a_folder_of_the_project_takes_no_image_s_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Anybody who can commit could have a signed image judged in the place of the registry's."""
    monkeypatch.chdir(tmp_path)
    layout(tmp_path / name, {"x:1": ([PACK["zstd"](layer("bin/"))], {})})
    host = Host(Home(tmp_path / "home"), Console(quiet=True))
    for ask in (is_file, lambda text: tree_of(text, host)):
        with pytest.raises(ImageError, match="is a file or folder here, and may be the name of an image"):
            ask(name)
    assert is_file(f"./{name}")
    assert is_file(str(tmp_path / name))
    assert "bin" in {path.strip("/") for path in tree_of(f"./{name}", host).files}


def test_an_engine_s_image_is_none_of_the_project_s_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    layout(tmp_path / "oci:torch", {"x:1": ([PACK["zstd"](layer("bin/"))], {})})
    assert not is_file("oci:torch")
    with pytest.raises(ImageError, match="no image"):
        tree_of("oci:torch", Host(Home(tmp_path / "home"), Console(quiet=True)))


def test_an_image_of_another_engine_under_the_name_alone_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is judged or run may be another image than the embedded store had under that name yesterday."""
    host = Host(Home(tmp_path / "home"), Console(quiet=True))
    layout(tmp_path / "elsewhere/oci", {"team/x:1": ([PACK["zstd"](layer("bin/"))], {})})
    other = OciEngine(Host(Home(tmp_path / "elsewhere"), Console(quiet=True)))

    def chosen(name: str, _host: Host) -> OciEngine:
        if name == "docker":
            raise HostError("Docker does not answer")
        return other

    monkeypatch.setattr(find, "choose", chosen)
    digest = find_image("team/x:1", host).image.digest
    said = capsys.readouterr().err
    assert said == (
        "warning: image team/x:1 is not in the embedded store: using podman's image of that name, "
        f"{digest}; write podman:team/x:1 if you mean that one\n"
    )
    assert find_image("podman:team/x:1", host).image.digest == digest
    assert capsys.readouterr().err == ""
    with pytest.raises(ImageError, match="team/y"):
        find_image("team/y:1", host)
    assert capsys.readouterr().err == ""
