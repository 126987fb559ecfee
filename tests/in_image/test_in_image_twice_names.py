"""Names of modules and parameters, by stand-ins for those of torch."""

from __future__ import annotations

from collections.abc import Iterator

from reprobuild.in_image.twice.names import Names


class Module:
    """A torch.nn.Module with named children and parameters."""

    def __init__(self, *parameters: str, **children: Module) -> None:
        self._parameters = {name: object() for name in parameters}
        self.children = children

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> Iterator[tuple[str, object]]:
        for path, module in self.named_modules():
            for name, each in module._parameters.items():
                yield f"{path}.{name}" if path else name, each

    def parameters(self) -> Iterator[object]:
        return (each for _, each in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, object]]:
        return iter(())

    def buffers(self) -> Iterator[object]:
        return iter(())


class Loss(Module):
    """Has nothing to name."""


def test_a_single_top_module_gives_no_prefix() -> None:
    names, model = Names(), Module("scale", encoder=Module("weight"))
    names.add(model)
    names.add(model)
    names.add(Loss())
    assert names.roots() == [model]
    assert (names.module(model), names.module(model.children["encoder"])) == ("Module", "encoder")
    assert sorted(names.parameters().values()) == ["encoder.weight", "scale"]


def test_several_are_told_apart_and_one_that_is_gone_has_no_name() -> None:
    names, first, second = Names(), Module("w"), Module("w")
    names.add(first)
    names.add(second)
    assert sorted(names.parameters().values()) == ["Module#2.w", "Module.w"]
    assert names.module(second) == "Module#2"
    del first
    assert names.roots() == [second]
    assert names.module(Loss()) == "Loss"
