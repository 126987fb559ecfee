"""Choices of kernels, recorded and locked, without torch."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobuild.in_image import kernels

KIND = {"torch": "2.13.0+cpu", "commit": "c0ffee", "cpu": "AVX2", "gpus": []}
CHOICES = {
    "inductor/cache/44136f": {"cache": {"mm": {"(8, 8)": {"highest": {"a": 2.0, "b": 1.0}}}}},
    "inductor/ab/cab.best_config": {"XBLOCK": 64},
    "triton/ABC/row_sums.autotune.json": {"configs_timings": []},
}
RECORD = {"schema": 1, "kind": KIND, "choices": CHOICES}


class Modules:
    """Modules as the hook imports them: what is to run after each."""

    def __init__(self) -> None:
        self.after: dict[str, list[Callable[[Any], object]]] = {}

    def __call__(self, name: str, action: Callable[[Any], object]) -> None:
        self.after.setdefault(name, []).append(action)

    def imported(self, name: str, module: Any) -> Any:
        for action in self.after[name]:
            action(module)
        return module


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    capability = SimpleNamespace(get_cpu_capability=lambda: "AVX2")
    module: Any = SimpleNamespace(
        __version__="2.13.0+cpu",
        version=SimpleNamespace(git_version="c0ffee"),
        backends=SimpleNamespace(cpu=capability),
        compile=lambda model: model,
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(kernels, "gpus", list)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for variable in kernels.CACHES.values():
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv(variable, "unset")
    return module


def locked(tmp_path: Path, *records: object) -> Modules:
    file = tmp_path / "kernels.json"
    file.write_text(json.dumps([*records]))
    modules = Modules()
    kernels.install(f"locked:{file}", modules)
    return modules


class Cache:
    """Inductor's cache of what it has measured, as far as it matters."""

    def lookup(self, choices: list[str], op: str, inputs: str, benchmark: Any, hint: Any = None) -> object:
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "cache")
        known = [json.loads(file.read_text())["cache"] for file in folder.glob("*")]
        for cache in known:
            if inputs in cache.get(op, {}):
                return cache[op][inputs]["highest"]
        return None if benchmark is None else benchmark(choices)


def products(modules: Modules) -> Any:
    cache = type("PersistentCache", (Cache,), {"lookup": Cache.lookup})
    modules.imported("torch._inductor.codecache", SimpleNamespace(PersistentCache=cache))
    return cache()


def test_a_recorded_choice_is_taken_and_another_is_an_error_in_place_of_a_measurement(tmp_path: Path) -> None:
    cache = products(locked(tmp_path, RECORD))
    measured: list[object] = []
    assert cache.lookup(["a", "b"], "mm", "(8, 8)", measured.append) == {"a": 2.0, "b": 1.0}
    with pytest.raises(
        kernels.KernelNotLockedError, match=r"mm of \(9, 9\) .*does not have it.*--record-kernels"
    ):
        cache.lookup(["a", "b"], "mm", "(9, 9)", measured.append)
    assert cache.lookup(["a", "b"], "mm", "(9, 9)", None) is None, "without a measurement nothing is chosen"
    assert measured == []


@pytest.mark.parametrize(
    ("key", "value"),
    [("gpus", ["NVIDIA H100"]), ("cpu", "AVX512"), ("torch", "2.12.0"), ("commit", "other")],
)
def test_choices_of_another_kind_are_not_taken(key: str, value: object, tmp_path: Path) -> None:
    cache = products(locked(tmp_path, {**RECORD, "kind": {**KIND, key: value}}))
    with pytest.raises(
        kernels.KernelNotLockedError, match=r"none is recorded for this kind, torch 2\.13\.0\+cpu"
    ):
        cache.lookup(["a"], "mm", "(8, 8)", list)


def test_choices_for_a_gpu_that_the_driver_does_not_name_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without NVML, which NVIDIA_DRIVER_CAPABILITIES=compute alone leaves out."""
    monkeypatch.undo()
    torch: Any = SimpleNamespace(
        __version__="2.13.0+cu130",
        version=SimpleNamespace(git_version="c0ffee", cuda="13.0"),
        backends=SimpleNamespace(cpu=SimpleNamespace(get_cpu_capability=lambda: "AVX2")),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(kernels, "named_by_driver", list)
    monkeypatch.setattr(kernels, "DEVICES", tmp_path)
    assert kernels.gpus() == []
    (tmp_path / "nvidia0").touch()
    assert kernels.gpus() == [kernels.UNKNOWN]
    record = {**RECORD, "kind": kernels.kind()}
    (tmp_path / "kernels.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="the driver does not name this machine's GPU"):
        kernels.Lock(str(tmp_path / "kernels.json")).mine()
    torch.version.cuda = None
    assert kernels.gpus() == []


def test_without_a_record_everything_is_refused(tmp_path: Path) -> None:
    modules = Modules()
    kernels.install(f"locked:{tmp_path}/none.json", modules)
    with pytest.raises(kernels.KernelNotLockedError, match="No such file"):
        products(modules).lookup(["a"], "mm", "(8, 8)", list)


class Benchmarker:
    def benchmark(self) -> None: ...
    def benchmark_gpu(self) -> None: ...
    def infer_device(self) -> str:
        return "cpu"


class Autotuner:
    base_fn = SimpleNamespace(__name__="row_sums")
    fn = base_fn

    def _bench(self) -> None: ...
    def benchmark_all_configs(self) -> None: ...


def test_every_other_measurement_is_refused_too(tmp_path: Path) -> None:
    modules = locked(tmp_path, RECORD)
    own = type("Benchmarker", (), {**vars(Benchmarker), "__module__": "benchmarking"})
    name = "torch._inductor.runtime.benchmarking"
    modules.imported(name, SimpleNamespace(__name__="benchmarking", Benchmarker=own, other=Autotuner))
    for call in (own().benchmark, own().benchmark_gpu):
        with pytest.raises(kernels.KernelNotLockedError, match="a kernel would be chosen"):
            call()
    assert own().infer_device() == "cpu"
    tuner = type("Autotuner", (Autotuner,), {})
    modules.imported("triton.runtime.autotuner", SimpleNamespace(Autotuner=tuner))
    modules.imported("torch._inductor.runtime.triton_heuristics", SimpleNamespace(CachingAutotuner=tuner))
    for call in (tuner()._bench, tuner().benchmark_all_configs):
        with pytest.raises(kernels.KernelNotLockedError, match="a configuration of row_sums would"):
            call()


def test_inductor_may_tune_only_once_choices_are_guarded(tmp_path: Path) -> None:
    modules = locked(tmp_path, RECORD)
    config = SimpleNamespace(deterministic=True, fx_graph_cache=True, compile_threads=8)
    modules.imported("torch._inductor.config", config)
    assert config == SimpleNamespace(deterministic=False, fx_graph_cache=False, compile_threads=1)
    assert [*modules.after].index("torch._inductor.config") == len(modules.after) - 1


def test_nothing_is_compiled_where_a_guard_does_not_fit_this_torch(tmp_path: Path, torch: Any) -> None:
    modules = locked(tmp_path, RECORD)
    with pytest.raises(AttributeError):
        modules.imported("torch._inductor.codecache", SimpleNamespace(__name__="codecache"))
    with pytest.raises(kernels.KernelNotLockedError, match="codecache of this version is not known"):
        torch.compile(None)


def test_choices_of_an_earlier_run_are_not_taken_where_none_is_recorded(tmp_path: Path) -> None:
    products(locked(tmp_path, RECORD))
    cache = products(locked(tmp_path, {**RECORD, "kind": {**KIND, "cpu": "AVX512"}}))
    with pytest.raises(kernels.KernelNotLockedError, match="none is recorded for this kind"):
        cache.lookup(["a", "b"], "mm", "(8, 8)", list)


def test_a_folder_of_another_user_is_not_taken(tmp_path: Path) -> None:
    locked(tmp_path, RECORD)
    (folder,) = tmp_path.glob("reprobuild-kernels-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(kernels.KernelNotLockedError, match="is another user's: remove it"):
        products(locked(tmp_path, RECORD)).lookup(["a"], "mm", "(8, 8)", list)


def test_what_was_recorded_is_what_is_locked(tmp_path: Path) -> None:
    folder, modules = tmp_path / "record", Modules()
    kernels.install(f"record:{folder}", modules)
    assert os.environ["TRITON_CACHE_DIR"] == str(folder / "triton")
    config = modules.imported("torch._inductor.config", SimpleNamespace(deterministic=True))
    assert config.deterministic is False
    with pytest.raises(ValueError, match="no kernel was chosen by timing"):
        kernels.packed(str(folder))
    others = {"inductor/ab/cab.py": "code", "inductor/locks/a.lock": "", "triton/ABC/row_sums.cubin": "code"}
    for path, content in {
        **{path: json.dumps(content) for path, content in CHOICES.items()},
        **others,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    assert kernels.records(kernels.packed(str(folder)), "x") == [RECORD]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("3", "not a record of kernel choices"),
        (json.dumps({**RECORD, "schema": 2}), "not a record of kernel choices of schema 1"),
        (json.dumps({**RECORD, "more": 1}), "expected the keys"),
        (json.dumps({**RECORD, "kind": {**KIND, "gpus": [3]}}), "expected the texts"),
        (json.dumps({**RECORD, "kind": {**KIND, "gpus": ["B", "A"]}}), "expected each name once"),
        (json.dumps({**RECORD, "kind": {**KIND, "gpus": ["A", "A"]}}), "expected each name once"),
        (json.dumps({**RECORD, "kind": {**KIND, "cpu": None}}), "expected the texts"),
        (json.dumps({**RECORD, "choices": {}}), "expected a table that is not empty"),
        *(
            (json.dumps({**RECORD, "choices": {path: {}}}), "is not a file of choices")
            for path in (
                *(
                    "/etc/passwd",
                    "inductor/../../x.best_config",
                    "triton/a/../b.autotune.json",
                    "inductor/a.py",
                ),
                *(
                    "triton/.a/b.autotune.json",
                    "inductor/cache/../x",
                    "inductor/ab/cab.so",
                    "inductor/cache/é",
                ),
            )
        ),
        (json.dumps({**RECORD, "choices": {"inductor/cache/1": "text"}}), "is not a file of choices"),
    ],
)
def test_what_is_no_record_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        kernels.records(text, "choices.json")
    assert str(caught.value).startswith("choices.json: ")


@pytest.mark.parametrize("how", ["", "on", "record", "record:", "lock"])
def test_another_value_of_the_variable_is_named(how: str) -> None:
    with pytest.raises(ValueError, match="expected locked, locked:FILE or record:FOLDER"):
        kernels.install(how, Modules())


def test_every_model_of_this_machine_s_gpus_is_in_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [b"NVIDIA T4", b"NVIDIA H100", b"NVIDIA T4"]

    def count(place: Any) -> int:
        place._obj.value = len(models)
        return 0

    def handle(index: int, place: Any) -> int:
        place._obj.value = index + 1
        return 0

    def name(device: Any, text: Any, _: int) -> int:
        text.value = models[device.value - 1]
        return 0

    library = SimpleNamespace(
        nvmlInit_v2=lambda: 0,
        nvmlShutdown=lambda: 0,
        nvmlDeviceGetCount_v2=count,
        nvmlDeviceGetHandleByIndex_v2=handle,
        nvmlDeviceGetName=name,
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert kernels.named_by_driver() == ["NVIDIA H100", "NVIDIA T4"]
    # One that fell off the bus: GPU_IS_LOST is 15 of nvmlReturn_t.
    for failing in ("nvmlDeviceGetName", "nvmlDeviceGetHandleByIndex_v2"):
        with monkeypatch.context() as patched:
            patched.setattr(library, failing, lambda *_: 15)
            assert kernels.named_by_driver() == [kernels.UNKNOWN]
    models[0] = b""
    assert kernels.UNKNOWN in kernels.named_by_driver()


@pytest.mark.parametrize(
    ("path", "content", "wrong"),
    [
        ("inductor/cache/44", {"cache": {"mm": {"(8, 8)": {"highest": {"a": None}}}}}, "None is not a time"),
        ("inductor/cache/44", {"mm": {"(8, 8)": {"highest": {"a": float("nan")}}}}, "nan is not a time"),
        ("inductor/cache/44", {"mm": {"(8, 8)": {"highest": {"a": "1"}}}}, "'1' is not a time"),
        ("inductor/cache/44", {"mm": {"(8, 8)": {"highest": {"a": True}}}}, "True is not a time"),
        ("inductor/cache/44", {"mm": {"(8, 8)": {"highest": {"a": -1.0}}}}, "-1.0 is not a time"),
        ("inductor/cache/44", {"cache": {"mm": 5}}, "is not a file of choices"),
        ("triton/A/k.autotune.json", {"configs_timings": [[{"X": 1}, [None]]]}, "None is not a time"),
        ("triton/A/k.autotune.json", {"configs_timings": [[{"X": 1}, float("nan")]]}, "nan is not a time"),
        ("triton/A/k.autotune.json", {"configs_timings": [5]}, "is not a file of choices"),
        ("triton/A/k.autotune.json", {"configs_timings": [[{"X": 1}, [1.0, 2, 0.5]]]}, None),
        ("inductor/ab/cab.best_config", {"XBLOCK": 64, "maxnreg": None}, None),
    ],
)
def test_times_that_no_compiler_can_compare_are_no_record(
    path: str, content: object, wrong: str | None
) -> None:
    text = json.dumps({**RECORD, "choices": {path: content}})
    if wrong is None:
        assert kernels.records(text, "a.json")[0]["choices"] == {path: content}
    else:
        with pytest.raises(ValueError, match=rf"^a\.json: choices: '{path}'.*{wrong}"):
            kernels.records(text, "a.json")


def test_a_kernel_that_failed_is_recorded_as_the_slowest() -> None:
    """Inductor gives it an infinite time, which JSON does not have, and which no reader of a lock accepts."""
    times = {"a": float("inf"), "b": 1.0}
    cache = json.dumps({"cache": {"mm": {"(8, 8)": {"highest": times}}}})
    found = kernels.record_of({kernels.KIND: json.dumps(KIND), "inductor/cache/44": cache})
    assert "Infinity" not in found
    (record,) = kernels.records(found, "a.json")
    kept = record["choices"]["inductor/cache/44"]["cache"]["mm"]["(8, 8)"]["highest"]
    assert kept["b"] == 1.0 < kept["a"]
