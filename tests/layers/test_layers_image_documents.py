"""The JSON of an image, byte for byte; and the manifest of files, against the image's own program."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import zstandard

from conftest import GOLDEN
from reprobuild.in_image import manifest as program
from reprobuild.layers.image_documents import documents, file_manifest
from reprobuild.oci.documents import sha256
from reprobuild.oci.tar_writer import Layer, LayerWriter, Record
from reprobuild.render.image_config import image_config
from reprobuild.render.own_files import MANIFEST_FOLDERS
from support.locks import LOCK

LAYERS = [
    ("Debian", Layer(diff_id=sha256(b"tar 1"), digest=sha256(b"blob 1"), size=11)),
    ("torch", Layer(diff_id=sha256(b"tar 2"), digest=sha256(b"blob 2"), size=12)),
]


def test_the_documents_of_an_image(golden: Callable[[Path, bytes], None]) -> None:
    made = documents(LOCK, image_config(LOCK), LAYERS)
    golden(GOLDEN / "image-manifest.json", made.manifest + b"\n")
    golden(GOLDEN / "image-config.json", made.config + b"\n")
    assert made.digest == sha256(made.manifest)


def test_the_manifest_names_its_blobs() -> None:
    made = documents(LOCK, image_config(LOCK), LAYERS)
    manifest, config = json.loads(made.manifest), json.loads(made.config)
    assert (manifest["config"]["digest"], manifest["config"]["size"]) == (
        sha256(made.config),
        len(made.config),
    )
    assert [(y["digest"], y["size"]) for y in manifest["layers"]] == [(y.digest, y.size) for _, y in LAYERS]
    assert config["rootfs"]["diff_ids"] == [layer.diff_id for _, layer in LAYERS]
    assert len(config["history"]) == len(LAYERS)


def test_the_file_manifest_is_what_the_program_in_the_image_writes(tmp_path: Path) -> None:
    records: list[Record] = []

    def layer(fill: Callable[[LayerWriter], object]) -> None:
        out = io.BytesIO()
        writer = LayerWriter(out)
        fill(writer)
        writer.close()
        records.extend(writer.records)
        tar = zstandard.ZstdDecompressor().decompressobj().decompress(out.getvalue())
        subprocess.run(["tar", "-xp", "-C", str(tmp_path)], input=tar, check=True)

    def below(writer: LayerWriter) -> None:
        for path in ("opt", "opt/venv", "opt/venv/bin", "usr", "usr/lib", "usr/lib/empty", "usr/lib-x"):
            writer.folder(path)
        writer.file("usr/lib/néw, file", 0o640, 3, [b"abc"])
        writer.file("usr/lib.conf", 0o644, 0, [])
        writer.link("usr/lib64", "lib")
        writer.file("opt/venv/bin/run", 0o755, 5, [b"first"])
        writer.file("opt/elsewhere", 0o644, 1, [b"x"])
        writer.file("opt/venvs", 0o644, 1, [b"x"])

    def above(writer: LayerWriter) -> None:
        writer.folder("opt/venv", 0o755)
        writer.file("opt/venv/bin/run", 0o700, 6, [b"second"])

    layer(below)
    layer(above)
    roots = [f"{tmp_path}{folder}" for folder in MANIFEST_FOLDERS]
    done = subprocess.run([sys.executable, program.__file__, *roots], capture_output=True, check=True)
    found = done.stdout.decode().replace(f"{tmp_path}/", "/")
    assert found == file_manifest(records).decode()
    assert "file\t700\t" in found
    assert "venvs" not in found


def test_a_name_forges_no_line_of_the_file_manifest() -> None:
    """As a base image could, whose files are named as it likes."""
    forged = Record("usr/x\nfile\t755\t0\t/usr/bin/python3", "file", 0o644, "1")
    link = Record("usr/l\u2028", "link", 0o777, "to\tnowhere")
    found = list(program.read(file_manifest([forged, link])))
    assert found == [
        ("link", "777", link.content, f"/{link.path}"),
        ("file", "644", forged.content, f"/{forged.path}"),
    ]
