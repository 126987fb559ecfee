from __future__ import annotations

import collections
import io
import json
import os
import pickle
import struct
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.twice.checkpoints import pickle_digest, storage_names, tensors
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.text_tokens import general

REST = "everything but the tensors"
OF_RUN = Evidence(began=1795391330.0, ended=1795391345.0)
"""Of a run from 23:48:50 to 23:49:05 on 2026-11-22."""


def of_run(text: str) -> str:
    return general(text, OF_RUN)


def read(path: Path) -> Mapping[str, str]:
    return tensors(path, of_run)


class Storage:
    def __init__(self, key: str) -> None:
        self.key = key


def rebuild(*arguments: Any) -> Any:
    """Stand in for torch._utils._rebuild_tensor_v2."""
    raise AssertionError("it is executed")


class Tensor:
    def __init__(self, key: str) -> None:
        self.storage = Storage(key)

    def __reduce__(self) -> Any:
        return rebuild, (self.storage, 0, (2, 2), (2, 1), False, collections.OrderedDict())


class Module:
    def __init__(self, **values: Any) -> None:
        self.__dict__ |= values


class Saver(pickle.Pickler):
    """Writes as torch.save does: a storage is a persistent id."""

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Storage):
            return ("storage", rebuild, value.key, "cpu", 4)
        return None


def pickled(value: Any, protocol: int = 2) -> bytes:
    out = io.BytesIO()
    Saver(out, protocol).dump(value)
    return out.getvalue()


def checkpoint(file: Path, value: Any, **storages: bytes) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("it/data.pkl", pickled(value))
        archive.writestr("it/version", "3\n")
        for key, content in storages.items():
            archive.writestr(f"it/data/{key[1:]}", content)
    return file


def two_layers() -> Any:
    state = collections.OrderedDict([("0.weight", Tensor("0")), ("0.bias", Tensor("1"))])
    state["1.weight"] = Tensor("2")
    return state


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("value", "names"),
    [
        (two_layers(), {"0": "0.weight", "1": "0.bias", "2": "1.weight"}),
        (
            {"model": two_layers(), "opt": {"state": {0: {"step": 3, "exp_avg": Tensor("7")}}}},
            {"0": "model.0.weight", "1": "model.0.bias", "2": "model.1.weight", "7": "opt.state.0.exp_avg"},
        ),
        ([Tensor("0"), (1, Tensor("1"))], {"0": "0", "1": "1.1"}),
        (Module(weight=Tensor("0"), below=Module(bias=Tensor("1"))), {"0": "weight", "1": "below.bias"}),
        (Tensor("0"), {"0": ""}),
        ({"a": Tensor("0"), "tied": Tensor("0")}, {"0": "a"}),
    ],
    ids=["state", "training", "list", "module", "alone", "tied"],
)
def test_the_names_are_the_paths_of_the_keys(value: Any, names: dict[str, str], protocol: int) -> None:
    assert storage_names(pickled(value, protocol)) == names


def test_each_storage_is_compared_by_itself(tmp_path: Path) -> None:
    one = read(checkpoint(tmp_path / "one.pt", two_layers(), k0=b"a", k1=b"b", k2=b"c"))
    assert one.keys() == {REST, "0.weight", "0.bias", "1.weight"}
    for key, name in (("k0", "0.weight"), ("k1", "0.bias"), ("k2", "1.weight")):
        content = {"k0": b"a", "k1": b"b", "k2": b"c"} | {key: b"other"}
        other = read(checkpoint(tmp_path / "other.pt", two_layers(), **content))
        assert [each for each in one if one[each] != other[each]] == [name]


def test_storages_that_no_name_leads_to_are_compared_too(tmp_path: Path) -> None:
    found = read(checkpoint(tmp_path / "it.pt", {"a": 1}, k0=b"a", k1=b"b"))
    assert found.keys() == {REST, "storage 0", "storage 1"}


def test_of_two_with_one_name_neither_hides_the_other(tmp_path: Path) -> None:
    value = {"x" * 400 + "1": Tensor("0"), "x" * 400 + "2": Tensor("1")}
    assert len(read(checkpoint(tmp_path / "it.pt", value, k0=b"a", k1=b"b"))) == 3


@pytest.mark.parametrize("member", ["it/constants/0", "it/code/__torch__.py", "it/data.pkl", "it/x/data.pkl"])
def test_what_torchscript_keeps_beside_its_tensors_counts(member: str, tmp_path: Path) -> None:
    sides = []
    for content in (pickled({"scale": 1.5}), pickled({"scale": 2.5})):
        path = checkpoint(tmp_path / "it.pt", two_layers(), first=b"1111", second=b"2222")
        with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings(action="ignore"):
            archive.writestr(member, content)
        sides.append(dict(read(path)))
    assert sides[0].keys() == sides[1].keys()
    assert sides[0] != sides[1]


@pytest.mark.parametrize("name", ["it.pt", "it.npz"])
def test_bytes_before_and_after_the_members_of_an_archive_count(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("it/data.pkl", pickled({}))
    plain = dict(read(path))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"accuracy 0.91"
    assert dict(read(path)) != plain
    path.write_bytes(b"accuracy 0.91" + path.read_bytes())
    assert read(path) == {}


def test_nothing_is_executed(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "executed"),)

    assert read(checkpoint(tmp_path / "it.pt", {"a": Evil(), "b": Tensor("0")}, k0=b"a")).keys() == {
        REST,
        "b",
    }
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b".", b"\x80\x02}q\x00", b"\x80\x02u.", b"\x80\x02h\x07.", b"(((((.", b"\x80\x02]q\x00h\x00a."],
    ids=["empty", "only the end", "no end", "no mark", "no memo", "marks", "holds itself"],
)
def test_a_pickle_that_makes_no_sense_is_compared_by_its_bytes(content: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "it.pt", "w") as archive:
        archive.writestr("it/data.pkl", content)
        archive.writestr("it/data/0", b"a")
    assert read(tmp_path / "it.pt").keys() in (set(), {REST, "storage 0"})


def test_safetensors_with_their_notes(tmp_path: Path) -> None:
    def written(name: str, note: str, content: bytes, **more: str) -> Path:
        header = {
            "__metadata__": {**more, "note": note},
            "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        }
        text = json.dumps(header).encode()
        (tmp_path / name).write_bytes(struct.pack("<Q", len(text)) + text + content)
        return tmp_path / name

    one = read(written("one.safetensors", "x", b"aaaabbbb"))
    other = read(written("other.safetensors", "x", b"aaaabbbc"))
    noted = read(written("noted.safetensors", "y", b"aaaabbbb"))
    assert [each for each in one if one[each] != other[each]] == ["b"]
    assert [each for each in one if one[each] != noted[each]] == [REST]
    # Its library writes the notes in the order of a table of hashes, which differs by process.
    others = [
        read(written("other.safetensors", "x", b"aaaabbbb", **each))
        for each in ({"a": "1", "z": "2"}, {"z": "2", "a": "1"})
    ]
    assert others[0] == others[1]
    assert read(written("noon.safetensors", "2026-11-22 23:48", b"aaaabbbb")) == read(
        written("evening.safetensors", "2026-11-22 23:49", b"aaaabbbb")
    )


def test_bytes_of_no_tensor_count(tmp_path: Path) -> None:
    text = json.dumps({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    path = tmp_path / "more.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"x")
    assert read(path).keys() == {REST, "a"}
    path.write_bytes(path.read_bytes() + b"accuracy 0.91")
    assert read(path) == {}
    entry = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    text = json.dumps({"a": entry, "b": entry}).encode()  # as many bytes as the file has, but not those
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"xy")
    assert read(path) == {}


def test_a_model_of_keras_is_compared_without_its_date_and_addresses(tmp_path: Path) -> None:
    """https://github.com/keras-team/keras/blob/master/keras/src/saving/saving_lib.py"""

    def saved(
        name: str, date: str, identity: int, units: int = 8, weights: bytes = b"w"
    ) -> Mapping[str, str]:
        config = {"config": {"units": units}, "shared_object_id": identity}
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("metadata.json", json.dumps({"date_saved": date}))
            archive.writestr("config.json", json.dumps(config))
            archive.writestr("model.weights.h5", weights)
        return dict(tensors(tmp_path / name, lambda text: general(text, evidence)))

    evidence = replace(OF_RUN, memory=((140_000_000_000_000, 141_000_000_000_000),))
    one = saved("it.keras", "2026-11-22@23:48:51", 140_255_466_164_816)
    assert one == saved("it.keras", "2026-11-22@23:48:59", 140_888_466_627_920)
    for other in (
        saved("it.keras", "2026-11-22@22:48:51", 140_255_466_164_816),
        saved("it.keras", "2026-11-22@23:48:51", 140_255_466_164_816, units=9),
        saved("it.keras", "2026-11-22@23:48:51", 140_255_466_164_816, weights=b"v"),
    ):
        assert len([name for name in one if one[name] != other[name]]) == 1


def test_tensors_that_share_bytes_are_not_read_again_and_again(tmp_path: Path) -> None:
    entry = {"dtype": "U8", "shape": [4096], "data_offsets": [0, 4096]}
    text = json.dumps({"a": entry, "b": entry}).encode()
    path = tmp_path / "shared.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"x" * 4096)
    assert read(path) == {}


@pytest.mark.parametrize("protocol", [2, 5])
def test_times_in_a_pickle_do_not_count_and_everything_else_does(protocol: int) -> None:
    def digest(**held: Any) -> str:
        values = {"epoch": 3, "saved_at": 1795391339.8, "when": "2026-11-22 23:48", **held}
        return pickle_digest(pickle.dumps(values, protocol), of_run)

    later = digest(saved_at=1795391341.25, when="2026-11-22 23:49")
    assert later == digest()
    changed = [digest(epoch=4), digest(rate=0.1), digest(rate=0.2), digest(note="a"), digest(note="b")]
    others = [digest(saved_at=1795391500.25), digest(train_time=1.5), digest(train_time=2.5)]
    assert len({digest(), *changed, *others}) == 9


@pytest.mark.parametrize(
    "header", ["[]", "1", '{"__metadata__": 1}', '{"a": []}', '{"a": {}}', "{", '{"a": 1}']
)
def test_safetensors_that_make_no_sense_are_compared_by_their_bytes(tmp_path: Path, header: str) -> None:
    path = tmp_path / "odd.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode())
    assert read(path) == {}


def test_a_pickle_that_copies_one_list_again_and_again_is_given_up() -> None:
    """60 kB of it took two seconds, and a megabyte would have taken hours."""
    listed = pickle.EMPTY_LIST + pickle.BINPUT + b"\0" + pickle.MARK + pickle.NONE * 100_000 + pickle.APPENDS
    called = pickle.NONE + pickle.BINGET + b"\0" + pickle.REDUCE + pickle.POP
    with pytest.raises(ValueError, match="too long"):
        storage_names(listed + called * 1000 + pickle.STOP)


@pytest.mark.parametrize("name", ["x.pt", "x.npz", "x.keras"])
def test_a_directory_that_would_take_all_memory_is_not_read(tmp_path: Path, name: str) -> None:
    """A sparse file takes no disk, and says that its directory has 40 GB."""
    path, size = tmp_path / name, 40 << 30
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0))
        file.write(struct.pack("<4sLQL", b"PK\6\7", 0, size, 1))
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    assert read(path) == {}
