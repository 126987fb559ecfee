"""Credentials of a registry, from the files of ``docker login`` and ``podman login``."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import RegistryError
from ...host import process

_HELPER_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Login:
    """A user and password, or a token in the password's place with ``<token>`` for user."""

    user: str
    password: str

    @property
    def is_token(self) -> bool:
        """Whether it is an identity token, which an authorization server takes in exchange for another."""
        return self.user == "<token>"


def login_for(host: str, repository: str, environ: Mapping[str, str] = os.environ) -> Login | None:
    """Return the login of a registry, as ``host:port``, for a repository in it; None without one.

    Podman's files may have logins for single repositories; the longest name that fits counts. Raises
    `RegistryError` when a file cannot be read or a helper fails.
    """
    parts = [host, *repository.split("/")]
    keys = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    for file in _files(environ):
        config = _read(file)
        for key in keys:
            login = _of(config, key, file)
            if login is not None:
                return login
    return None


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files in the order of `containers-auth.json(5)`, Docker's last."""
    home = Path(environ.get("HOME", "/"))
    if own := environ.get("REGISTRY_AUTH_FILE"):
        yield Path(own)
    if run := environ.get("XDG_RUNTIME_DIR"):
        yield Path(run) / "containers/auth.json"
    elif os.geteuid() == 0:
        yield Path("/run/containers/0/auth.json")
    yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "containers/auth.json"
    yield Path(environ.get("DOCKER_CONFIG") or home / ".docker") / "config.json"


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RegistryError(
            f"{file}: cannot be read as a file of logins: {error}", hint="correct it, or log in again"
        ) from None
    if isinstance(found, dict) and all(
        isinstance(found.get(k) or {}, dict) for k in ("auths", "credHelpers")
    ):
        auths = (found.get("auths") or {}).values()
        if all(isinstance(entry or {}, dict) for entry in auths):
            return found
    raise RegistryError(
        f"{file}: is not a file of logins: expected objects called auths and credHelpers",
        hint="correct it, or log in again",
    )


def _of(config: Mapping[str, Any], key: str, file: Path) -> Login | None:
    # A helper keeps logins by registry, not by repository.
    store = config.get("credsStore") if "/" not in key else None
    helper = (config.get("credHelpers") or {}).get(key) or store
    if helper and (login := _ask(str(helper), key)) is not None:
        return login
    auths = config.get("auths") or {}
    # Docker keeps the login of its own registry under an address of its first API.
    names = (key, f"https://{key}", f"http://{key}", f"https://{key}/v1/")
    entry: Mapping[str, Any] = next((auths[name] for name in names if auths.get(name)), {})
    if token := entry.get("identitytoken"):
        return Login("<token>", str(token))
    if not entry.get("auth"):
        return None
    try:
        user, colon, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except (ValueError, TypeError):
        colon = ""
    if not colon:
        raise RegistryError(f"{file}: auths.{key}.auth is not user:password in base64", hint="log in again")
    return Login(user, password)


def _ask(helper: str, key: str) -> Login | None:
    """Query a credential helper (docker/docker-credential-helpers); None if it has no login."""
    program = process.require(f"docker-credential-{helper}", "by your settings for registries")
    try:
        # Long: it may ask the user for a password of its own.
        done = process.run([program, "get"], stdin=key.encode(), check=False, timeout=_HELPER_SECONDS)
    except process.ProcessTimeout as error:
        raise RegistryError(f"docker-credential-{helper} gives no login for {key}: {error.message}") from None
    if done.returncode != 0:
        if b"credentials not found" in done.stdout + done.stderr:
            return None
        text = process.tail(done.stdout or done.stderr)
        raise RegistryError(f"docker-credential-{helper} failed for {key}: {text}")
    try:
        found = json.loads(done.stdout)
        user, secret = found["Username"], found["Secret"]
    except (ValueError, KeyError, TypeError, RecursionError):
        # What it wrote may hold the password.
        raise RegistryError(
            f"docker-credential-{helper} does not answer with a login for {key} in JSON",
            hint=f"echo {key} | docker-credential-{helper} get",
        ) from None
    return Login(str(user), str(secret)) if secret else None
