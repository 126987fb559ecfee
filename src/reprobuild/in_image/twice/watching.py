"""Runs an action after a module's first import, and says what the recorder could not do."""

from __future__ import annotations

import sys
from _thread import get_ident
from functools import partial

TYPE_CHECKING = False  # importing typing costs milliseconds at the start of every process
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Action = Callable[[Any], object]


class Watcher:
    """A finder that finds nothing itself: the others find, and an action runs after a module has run."""

    def __init__(self) -> None:
        self._actions: dict[str, list[Action]] = {}
        self._runners: dict[str, Callable[..., Any]] = {}
        self._asking: set[tuple[str, int]] = set()
        """What is looked for now, and by which thread: reprobuild's hook asks all finders, too."""

    def after(self, name: str, action: Action) -> None:
        """Run ``action`` on a module after its first import, or now if that has been."""
        if name in sys.modules:
            _run(name, action, sys.modules[name])
        else:
            self._actions.setdefault(name, []).append(action)

    def around(self, name: str, runner: Callable[..., Any]) -> None:
        """Let ``runner`` call what runs a module at its first import."""
        self._runners[name] = runner

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give, its loader followed by the module's actions."""
        asked = (name, get_ident())
        if name not in self._actions or asked in self._asking:
            return None
        self._asking.add(asked)
        try:
            for finder in sys.meta_path:
                if finder is not self and hasattr(finder, "find_spec"):
                    spec = finder.find_spec(name, path, target)
                    if spec is not None:
                        self._follow(name, spec.loader)
                        return spec
        finally:
            self._asking.discard(asked)
        return None

    def _follow(self, name: str, loader: Any) -> None:
        try:
            run = loader.exec_module
            if name in self._runners:
                run = partial(self._runners[name], run)

            def exec_module(module: ModuleType) -> None:
                run(module)
                if module.__name__ == name:
                    for action in self._actions.pop(name, ()):
                        _run(name, action, module)

            loader.exec_module = exec_module
        except Exception as error:  # noqa: BLE001 -- an import must never fail because of the recorder
            warn(f"{name} cannot be watched", error)


def warn(what: str, error: BaseException) -> None:
    """Say on standard error what the recorder could not do."""
    if sys.stderr is not None:
        sys.stderr.write(f"reprobuild twice: warning: {what}: {type(error).__name__}: {error}\n")


def _run(name: str, action: Action, module: ModuleType) -> None:
    try:
        action(module)
    except Exception as error:  # noqa: BLE001 -- as above
        warn(f"{name} is not recorded", error)
