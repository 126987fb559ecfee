"""The names of parameters, buffers and modules, as the program's own top modules have them."""

from __future__ import annotations

import weakref
from typing import Any


class Names:
    """What has been called as a top module, and the names in it."""

    def __init__(self) -> None:
        self._roots: list[Any] = []
        self._modules: dict[int, tuple[weakref.ref[Any], str]] = {}

    def roots(self) -> list[Any]:
        """Return the top modules that are still there, in the order of their first call."""
        return [root for ref in self._roots if (root := ref()) is not None]

    def add(self, module: Any) -> None:
        """Take in a module that was called from outside of any other, if it has something to name."""
        if any(ref() is module for ref in self._roots):
            return
        if next(iter(module.parameters()), None) is None and next(iter(module.buffers()), None) is None:
            return
        self._roots.append(weakref.ref(module))
        self._modules.clear()

    def _prefixed(self) -> list[tuple[str, Any]]:
        roots = self.roots()
        if len(roots) == 1:
            return [("", roots[0])]
        seen: dict[str, int] = {}
        found = []
        for root in roots:
            kind = type(root).__name__
            seen[kind] = seen.get(kind, 0) + 1
            found.append((kind if seen[kind] == 1 else f"{kind}#{seen[kind]}", root))
        return found

    def module(self, module: Any) -> str:
        """Return the path of a module, which is its type's name where it is a top one."""
        if not self._modules:
            for prefix, root in self._prefixed():
                for name, each in root.named_modules():
                    path = ".".join(part for part in (prefix, name) if part)
                    self._modules.setdefault(id(each), (weakref.ref(each), path or type(root).__name__))
        known = self._modules.get(id(module))
        # Another module may have the address of one that is gone.
        return known[1] if known is not None and known[0]() is module else type(module).__name__

    def parameters(self) -> dict[int, str]:
        """Return the names of all parameters by their ids."""
        found: dict[int, str] = {}
        for prefix, root in self._prefixed():
            for name, each in root.named_parameters():
                found.setdefault(id(each), ".".join(part for part in (prefix, name) if part))
        return found

    def buffers(self) -> list[tuple[str, Any]]:
        """Return the buffers of all top modules with their names."""
        found: dict[int, tuple[str, Any]] = {}
        for prefix, root in self._prefixed():
            for name, each in root.named_buffers():
                found.setdefault(id(each), (".".join(part for part in (prefix, name) if part), each))
        return list(found.values())
