"""Select the engine: the one that the user names, or with ``auto`` the first that answers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal, assert_never

from ..errors import HostError
from ..host.host import Host
from ..lock.layer_record import LayerRecord
from .build_then_load import HandedOver
from .embedded import OciEngine
from .podman import PodmanEngine
from .protocols import Engine, EngineName, Taker

if TYPE_CHECKING:
    from .docker import DockerEngine

    AnyEngine = OciEngine | DockerEngine | PodmanEngine

Choice = Literal["auto", "oci", "docker", "podman"]


def choose(choice: Choice, host: Host, builder: str | None = None) -> AnyEngine:
    """Return an engine. ``auto`` is Docker if a daemon answers, else Podman, else oci; the choice is printed.

    Raises `HostError` if the named one does not answer.
    """
    if choice != "auto":
        return _engine(choice, host, builder)
    for name in ("docker", "podman"):
        with suppress(HostError):
            engine = _engine(name, host, builder)
            host.console.step(f"engine: {engine.kind}, which answers on this machine")
            return engine
    host.console.step("engine: oci, since neither Docker nor Podman answers on this machine")
    return _engine("oci", host, builder)


def maker(engine: AnyEngine, host: Host, *, independent: bool, record: LayerRecord | None = None) -> Engine:
    """Return what makes images for an engine: the embedded one, whose layers it takes, or itself.

    ``independent``: it builds the rendered Dockerfile, and shares no code with the embedded engine. Raises
    `HostError` if it is the embedded engine itself. ``record``: of layers that a registry gave to that one.
    """
    if not isinstance(engine, OciEngine):
        return engine if independent else HandedOver(engine, host, record)
    if independent:
        raise HostError(
            "--independent: the engine is oci, and nothing else is here to build the Dockerfile",
            hint="add --engine docker or --engine podman",
        )
    return engine if record is None else OciEngine(host, record=record)


def taker(name: Literal["docker", "podman"], host: Host) -> Taker:
    """Return an engine that images can be loaded into. Raises `HostError` if it does not answer."""
    return _docker(host) if name == "docker" else PodmanEngine(host)


def _engine(name: EngineName, host: Host, builder: str | None) -> AnyEngine:
    if builder is not None and name != "docker":
        raise HostError(
            f"--builder {builder}: only Docker has builders, but the engine is {name}",
            hint="add --engine docker",
        )
    match name:
        case "oci":
            return OciEngine(host)
        case "docker":
            return _docker(host, builder)
        case "podman":
            return PodmanEngine(host)
        case _:
            assert_never(name)


def _docker(host: Host, builder: str | None = None) -> DockerEngine:
    from .docker import DockerEngine  # noqa: PLC0415 -- the SDK takes longer to import than all else

    return DockerEngine(host, builder)
