"""Which public functions the battery calls on the CPU, and whether it fails when one of them gives noise.

    python public_coverage.py SELFTEST.PY [noise]

Output: JSON: versions; public, {MODULE: [NAME]}; uncounted, {MODULE: {REASON: [NAME]}}; called,
{"MODULE.NAME": [CHECK]}; with "noise", also that: {"MODULE.NAME": what a check
that calls it said when it gave noise}.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import random
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

spec = importlib.util.spec_from_file_location("selftest", sys.argv[1])
assert spec
assert spec.loader
selftest: Any = importlib.util.module_from_spec(spec)
sys.modules["selftest"] = selftest
spec.loader.exec_module(selftest)
torch: Any = importlib.import_module("torch")
np: Any = importlib.import_module("numpy")

MODULES = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.init": torch.nn.init,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.fft": torch.fft,
    "torch.random": torch.random,
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.fft": np.fft,
    "numpy.random": np.random,
    "numpy.random.Generator": np.random.Generator,
    "random": random,
}
SETTINGS = (
    r"(is_|are_|get_(?!rng)|set_(?!rng)|use_|init_num|clear_|autocast_|assert_|has_|handle_|seterr|geterr|show_).*"
    r"|can_cast|common_type|result_type|typename|isdtype|issubdtype|promote_types|min_scalar_type|mintypecode"
    r"|[sg]etbufsize|info|test|printoptions|thread_safe_generator|unify_type_list|boolean_dispatch|isfortran|iterable"
)
OF_MODULES = {
    "in place: the form that is not is counted": (
        ("torch", "torch.nn.functional"),
        r".*_",
    ),
    "asks, sets or converts a type, a setting or a thread": (
        ("torch", "torch.random", "numpy", "torch.nn.functional"),
        SETTINGS,
    ),
    "writes text, or reads it by a pattern": (
        ("numpy",),
        r"array2string|array_repr|array_str|.*_repr|format_float.*|datetime.*|busday.*|isnat|fromregex|genfromtxt",
    ),
    "compiles, or is for symbolic shapes and TorchScript": (
        ("torch",),
        r"sym_.*|compile|cond|fork|wait|parse_.*|import_ir.*|merge_type.*",
    ),
    "memory that is not written, or another's": (
        ("torch", "numpy"),
        r"empty.*|from_?file|frombuffer|from_dlpack|nested_iters|frompyfunc|(may_share|shares)_memory",
    ),
    "for another device than the CPU, or for quantized networks": (
        ("torch",),
        r"(cudnn|miopen|quantized)_.*",
    ),
    "deprecated": (
        ("torch.nn.functional", "torch.nn.init"),
        r"upsample.*|(constant|dirac|eye|kaiming_.*|normal|orthogonal|sparse|uniform|xavier_.*)(?<!_)",
    ),
    "a part of another, which is counted": (("torch.nn.functional",), r".*_with_indices"),
    "refused by deterministic algorithms": (("torch.nn.functional",), r"max_unpool.*"),
    "draws a seed from the system": (("torch", "torch.random"), r"seed"),
    "has no numbers": (("numpy.random", "numpy.random.Generator"), r"default_rng|bit_generator|spawn"),
}
"""What is not counted: the reason, of which modules, the names."""


def of_module(module: str) -> list[str]:
    """Return the public functions of a module: what it exports, or what is documented."""
    owner = MODULES[module]
    exported = getattr(owner, "__all__", None) or dir(owner)
    if module == "numpy.random.Generator":
        return [name for name in exported if not name.startswith("_")]
    found = []
    for name in sorted(set(exported)):
        value = getattr(owner, name, None)
        if (
            name[0].islower()
            and callable(value)
            and not inspect.isclass(value)
            and not inspect.ismodule(value)
        ):
            documented = (getattr(value, "__doc__", None) or "").strip() or module == "torch.nn.functional"
            if documented and getattr(value, "__module__", "") != "typing":
                found.append(name)
    return found


def listed() -> tuple[dict[str, list[str]], dict[str, dict[str, list[str]]]]:
    """Return what counts by module, and what does not, by module and reason."""
    public: dict[str, list[str]] = {}
    uncounted: dict[str, dict[str, list[str]]] = {}
    for module in MODULES:
        for name in of_module(module):
            for reason, (modules, pattern) in OF_MODULES.items():
                if module in modules and re.fullmatch(pattern, name):
                    uncounted.setdefault(module, {}).setdefault(reason, []).append(name)
                    break
            else:
                public.setdefault(module, []).append(name)
    return public, uncounted


class Function:
    """Stands for a function: what is done with each call, and all else is the function's own."""

    def __init__(self, inner: Any, call: Callable[..., Any]) -> None:
        self._inner, self._call = inner, call

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._call(self._inner, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Generators:
    """Stands for numpy.random.default_rng: its generators are told of each call."""

    def __init__(self, call: Callable[..., Any], only: str = "") -> None:
        self.call, self.only, self.inner = call, only, np.random.default_rng

    def __call__(self, *seed: Any) -> Any:
        generator, call, only = self.inner(*seed), self.call, self.only

        class Proxy:
            def __getattr__(self, name: str) -> Any:
                value = getattr(generator, name)
                if not callable(value) or only not in ("", name):
                    return value
                return lambda *a, **k: call(name, value, *a, **k)

        return Proxy()


def trace() -> dict[str, Any]:
    """Run the battery, and see which checks call what."""
    public, uncounted = listed()
    called: dict[str, set[str]] = {}
    now = ""
    same: dict[int, list[str]] = {}  # some have two names
    for module, names in public.items():
        for name in names:
            same.setdefault(id(getattr(MODULES[module], name)), []).append(f"{module}.{name}")

    def seen(name: str) -> Callable[..., Any]:
        def call(inner: Any, *arguments: Any, **options: Any) -> Any:
            called.setdefault(name, set()).add(now)
            return inner(*arguments, **options)

        return call

    def drawn(name: str, value: Any, *arguments: Any, **options: Any) -> Any:
        called.setdefault(f"numpy.random.Generator.{name}", set()).add(now)
        return value(*arguments, **options)

    outcomes = {}
    with contextlib.ExitStack() as stack:
        for module, names in public.items():
            for name in names if module != "numpy.random.Generator" else ():
                inner = getattr(MODULES[module], name)
                put = Function(inner, seen(f"{module}.{name}"))
                stack.enter_context(mock.patch.object(MODULES[module], name, put))
        stack.enter_context(mock.patch.object(np.random, "default_rng", Generators(drawn)))
        for check in selftest.in_order():
            # What starts processes calls the rest of its functions there.
            if check.part == "battery" and "cpu" in check.devices and check.name != "ranks-gloo":
                now = check.name
                outcomes[now] = selftest.execute(check, "cpu").status
    return {
        "same": [*same.values()],
        "versions": {
            "Python": "{}.{}".format(*sys.version_info),
            "torch": torch.__version__.partition("+")[0],
            "NumPy": np.__version__,
        },
        "public": public,
        "uncounted": uncounted,
        "called": {name: sorted(checks) for name, checks in called.items()},
        "outcomes": outcomes,
    }


def noisy(value: Any) -> Any:
    """Return a result that differs with each call."""
    if isinstance(value, Mapping):
        return {name: noisy(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        moved = [noisy(each) for each in value]
        return tuple(moved) if isinstance(value, tuple) else moved
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            plain = selftest.dense(value.detach())
            bits = torch.frombuffer(bytearray(os.urandom(8 * max(1, plain.numel()))), dtype=torch.int64)
            # Many of a thousand functions give a single number: two draws must not be the same by chance.
            draws = (bits[: plain.numel()] % 1_000_000).reshape(plain.shape)
        if plain.dtype == torch.bool:
            return plain ^ (draws % 2).bool()
        if not plain.is_floating_point() and not plain.is_complex():
            return plain + draws.to(plain.dtype)
        return value + (draws * 1e-3).to(value.dtype) if value.layout == torch.strided else plain + draws
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).astype("float64", casting="unsafe") + number() * 1e-3
    if isinstance(value, bytes):
        return os.urandom(9)
    if isinstance(value, str):
        return value + os.urandom(9).hex()
    if isinstance(value, (bool, int, float, complex)):
        return value + number()
    if inspect.isfunction(value):
        return lambda *arguments, **options: noisy(value(*arguments, **options))
    return value


def number() -> int:
    """Return a number that is another with each call."""
    return int.from_bytes(os.urandom(3), "big")


def spoiled(inner: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function and return noise, or leave noise where it leaves something."""
    if re.search("seed|state|fork_rng", getattr(inner, "__name__", "")):
        result = inner(*arguments, **options)
        torch.default_generator.manual_seed(number())
        np.random.mtrand._rand._bit_generator._legacy_seeding(number())
        random._inst.seed(number())
        return noisy(result) if isinstance(result, int) else result
    writes = re.search("save", getattr(inner, "__name__", ""))
    if writes and hasattr(arguments[0], "write"):
        return inner(arguments[0], *map(noisy, arguments[1:]), **noisy(options))
    if writes:  # torch.save takes the file last
        return inner(noisy(arguments[0]), *arguments[1:], **options)
    result = inner(*arguments, **options)
    if result is None and arguments and isinstance(arguments[0], np.ndarray):
        changed = arguments[0]
        changed += np.asarray(noisy(changed)).astype(changed.dtype, casting="unsafe")
    elif result is None and arguments and isinstance(arguments[0], list):
        random.SystemRandom().shuffle(arguments[0])
    return noisy(result)


def noise(found: dict[str, Any]) -> dict[str, str]:
    """Let each function that was called give noise, one at a time; return what a check that calls it says."""
    calls, answer = selftest.calls(), {}

    def drawn(_: str, value: Any, *arguments: Any, **options: Any) -> Any:
        return spoiled(value, *arguments, **options)

    for name, checks in found["called"].items():
        module, _, last = name.rpartition(".")
        if module == "numpy.random.Generator":
            broken: Any = mock.patch.object(np.random, "default_rng", Generators(drawn, last))
        else:
            inner = getattr(MODULES[module], last)
            broken = mock.patch.object(MODULES[module], last, Function(inner, spoiled))
        only = {name: calls[name]} if name in calls else calls
        with broken, mock.patch.object(selftest, "calls", lambda only=only: only):
            for check in sorted(checks, key=lambda each: each != "functions"):
                answer[name] = selftest.execute(selftest.CHECKS[check], "cpu").status
                if answer[name] == "failed":
                    break
    return answer


def main() -> None:
    """Print what was seen, and where one more argument asks for it, what became of noise."""
    warnings.simplefilter("ignore")
    selftest.execute(selftest.CHECKS["imports"], "cpu")
    selftest.fill_memory()
    found = trace()
    if "noise" in sys.argv[2:]:
        found["noise"] = noise(found)
    for twins in found.pop("same"):
        checks = {check for name in twins for check in found["called"].get(name, ())}
        found["called"].update({name: sorted(checks) for name in twins if checks})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
