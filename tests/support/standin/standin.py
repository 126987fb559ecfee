"""Puts the stand-in for GPUs into torch's build for the CPU, at the start of a process (by a .pth file).

``STANDIN`` names the compiled `standin.cpp`, which says what it is not; ``STANDIN_GPUS`` the number of GPUs;
``STANDIN_BROKEN`` operations that are out of order.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

LIBRARY = os.environ.get("STANDIN", "")
H100 = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=85_017_493_504,
    warp_size=32,
    L2_cache_size=52_428_800,
    shared_memory_per_block_optin=232_448,
)


class Stream:
    """All work is over when it returns; a stream is what the library notes an order for."""

    known: ClassVar[dict[int, Stream]] = {}

    def __init__(self, device: Any = None, priority: int = 0, **given: int) -> None:
        self.device_index = given.get("device_index", 0)
        self.stream_id = given.get("stream_id", len(self.known))
        self.known[self.stream_id] = self
        self.device_type, self.cuda_stream = 1, self.stream_id
        self.device = sys.modules["torch"].device("cuda", self.device_index)

    def wait_stream(self, other: Any) -> None:
        self.wait_event(other.record_event())

    def record_event(self, event: Any = None) -> Any:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        event.wait(self)

    def synchronize(self) -> None:
        self.record_event().synchronize()

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return bool(STATE.capturing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)


class Event:
    """A time, and what a stream had done by then."""

    def __init__(self, *_: object, **__: object) -> None:
        self.at = 0.0
        self.done: int | None = None

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()
        stream = stream or sys.modules["torch"].cuda.current_stream()
        self.done = STATE.library.standin_record(stream.stream_id)

    def wait(self, stream: Any = None) -> None:
        stream = stream or sys.modules["torch"].cuda.current_stream()
        if self.done:
            STATE.library.standin_wait(stream.stream_id, self.done)

    def synchronize(self) -> None:
        if self.done:
            STATE.library.standin_wait(PROCESSOR, self.done)

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return float(other.at - self.at) * 1e3


STATE = SimpleNamespace(capturing=False, replays=0, library=None)
PROCESSOR = ALL = -1
COPIES = ("aten::copy_", "aten::_to_copy", "aten::_local_scalar_dense")


def graphs(torch: Any) -> type:  # noqa: C901 -- two small classes
    """Return what stands for a CUDA graph: it does what is captured, and again what it was at each replay."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Capture(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[Any] = []

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            here = [each for each in (*args, result) if isinstance(each, torch.Tensor) and not each.is_cuda]
            if function._schema.name in COPIES and (here or "scalar" in function._schema.name):
                raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
            self.calls.append((function, args, kwargs or {}, result))
            return result

    class Graph:
        def __init__(self, *_: object, **__: object) -> None:
            self.capture = Capture()

        def capture_begin(self, *_: object, **__: object) -> None:
            if torch.cuda.current_stream().stream_id == 0:
                raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
            STATE.capturing = True
            self.capture.__enter__()

        def capture_end(self) -> None:
            self.capture.__exit__(None, None, None)
            STATE.capturing = False
            torch.cuda.synchronize()  # here it was done, and not noted alone

        def replay(self) -> None:
            STATE.replays += 1
            with torch.no_grad():
                for function, args, kwargs, result in self.capture.calls:
                    again = function(*args, **kwargs)
                    if isinstance(again, torch.Tensor) and again is not result:
                        result.copy_(again)

        def reset(self) -> None: ...

        def pool(self) -> tuple[int, int]:
            return 0, 0

    return Graph


def generators(torch: Any, standin: Any) -> tuple[type, Any]:
    """Return torch.Generator for GPUs, which the CPU's build of torch 2.6 refuses, and how one is made."""
    library = Path(torch.__file__).parent / "lib/libtorch_python.so"
    wrap = ctypes.PyDLL(str(library))["_Z17THPGenerator_WrapRKN2at9GeneratorE"]
    wrap.restype, wrap.argtypes = ctypes.py_object, [ctypes.c_void_p]
    standin.standin_generator.restype = ctypes.c_void_p
    real = torch.Generator

    def generator(index: int, own: int = 0) -> Any:
        return wrap(standin.standin_generator(index, own))

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __call__(cls, device: Any = "cpu") -> Any:
            device = torch.device(device)
            if device.type != "cuda":
                return real(device)
            return generator(-1 if device.index is None else device.index)

    class Generator(metaclass=Kind): ...

    return Generator, generator


def put_in(torch: Any) -> None:
    """Have torch say what its build for CUDA says on a machine with H100s."""
    standin = STATE.library = ctypes.CDLL(LIBRARY)
    standin.standin_record.restype, standin.standin_stream.restype = ctypes.c_void_p, ctypes.c_int64
    standin.standin_record.argtypes = standin.standin_set_stream.argtypes = [ctypes.c_int64]
    standin.standin_wait.argtypes = [ctypes.c_int64, ctypes.c_void_p]
    standin.standin_start()
    standin.standin_faults(b"", b"", os.environ.get("STANDIN_BROKEN", "").encode())
    started = []  # in which process torch has initialised CUDA

    def driver() -> None:
        if standin.standin_call_driver():
            raise RuntimeError("CUDA error: initialization error")

    def init() -> None:
        driver()
        started.append(os.getpid())

    def capturing() -> bool:
        driver()
        return bool(STATE.capturing)

    def count() -> int:
        driver()  # as cudaGetDeviceCount does
        return int(standin.standin_gpus())

    def select(index: int) -> int:
        driver()
        before = int(standin.standin_device())
        standin.standin_select(index)
        return before

    torch.version.cuda = "13.0"
    for name, value in {
        "_cuda_getDeviceCount": count,
        "_cuda_init": init,
        "_cuda_isInBadFork": lambda: bool(started) and started[0] != os.getpid(),
        "_cuda_getDevice": lambda: int(standin.standin_device()),
        "_cuda_setDevice": select,
        "_cuda_exchangeDevice": select,
        "_cuda_maybeExchangeDevice": select,
        "_cuda_synchronize": lambda: standin.standin_wait(PROCESSOR, standin.standin_record(ALL)),
        "_cuda_getCurrentRawStream": lambda _: 0,
        "_cuda_getArchFlags": lambda: "sm_90",
        "_cuda_getCompiledVersion": lambda: 13_000,
        "_cuda_emptyCache": lambda: None,
        "_host_emptyCache": lambda: None,
    }.items():
        setattr(torch._C, name, value)
    cuda = torch.cuda
    Graph, default = graphs(torch), Stream(stream_id=0)  # noqa: N806 -- a class

    torch.Generator, generator = generators(torch, standin)
    defaults = tuple(generator(number, 1) for number in range(standin.standin_gpus()))

    def asked(value: Any) -> Any:
        cuda._lazy_init()
        return value

    for name, value in {
        "get_device_properties": lambda device=None: asked(H100),
        "current_stream": lambda device=None: asked(Stream.known[standin.standin_stream()]),
        "default_stream": lambda device=None: default,
        "set_stream": lambda stream: standin.standin_set_stream(stream.stream_id),
        "is_current_stream_capturing": capturing,
        "default_generators": defaults,
        "_exchange_device": select,
        "_maybe_exchange_device": select,
        "_is_in_bad_fork": torch._C._cuda_isInBadFork,
        "_cudart": SimpleNamespace(cudaGetErrorString=str),
        "Stream": Stream,
        "Event": Event,
        "CUDAGraph": Graph,
        "graph_pool_handle": lambda: (0, 0),
    }.items():
        setattr(cuda, name, value)
    cuda.streams.Stream, cuda.streams.Event = Stream, Event
    cuda.graphs.CUDAGraph, cuda.graphs.graph_pool_handle = Graph, lambda: (0, 0)
    cuda._queued_calls.clear()
    cuda.nccl.version = lambda: (2, 28, 9)
    cudnn: Any = sys.modules["torch.backends.cudnn"]
    getattr(cudnn, "m", cudnn).version = lambda: 91_900
    torch.backends.cuda.is_built = lambda: True
    if torch.distributed.is_available():
        _gloo_for_nccl(torch, standin)


def _gloo_for_nccl(torch: Any, standin: Any) -> None:
    module = torch.distributed.distributed_c10d
    module.is_nccl_available = torch.distributed.is_nccl_available = lambda: True
    module._NCCL_AVAILABLE = True
    inner = torch.distributed.init_process_group

    def init_process_group(backend: str, *args: Any, **kwargs: Any) -> None:
        if backend == "nccl":
            if standin.standin_device() != kwargs["rank"]:
                raise RuntimeError(
                    f"rank {kwargs['rank']} has not set its GPU: a barrier would take another's"
                )
            standin.standin_take_over(b"allreduce_ broadcast_ allgather_ _allgather_base_ barrier")
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        inner("gloo", *args, **kwargs)

    module.init_process_group = torch.distributed.init_process_group = init_process_group


class Finder:
    """Loads the library before torch asks for its hooks, which it does once; the rest comes afterwards."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                run: Any = spec.loader.exec_module

                def exec_module(module: Any, run: Any = run) -> None:
                    ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)
                    run(module)
                    put_in(module)

                setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 -- its type is that of a method
                return spec
        return None


if LIBRARY:
    sys.meta_path.insert(0, Finder())
