"""A small Debian archive on loopback: real signed indexes, no packages behind them (apt only plans)."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from reprobuild.host.machine import architecture
from support.server import Server

DATE = "Sat, 01 Jun 2024 09:00:00 UTC"


class Key:
    """An OpenPGP key made for the test; gpg's home must have a short path, for its sockets."""

    def __init__(self, home: Path) -> None:
        self._gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback"]
        home.mkdir(mode=0o700)
        self._run(
            "--passphrase", "", "--quick-gen-key", "tests@reprobuild.example", "ed25519", "sign", "never"
        )
        self._home = home

    @property
    def signed_by(self) -> str:
        """The public key in the form of a field of deb822."""
        armor = self._run("--armor", "--export").decode().strip()
        return "\n" + "\n".join(f" {line or '.'}" for line in armor.splitlines())

    def sign(self, text: str) -> bytes:
        return self._run("--clearsign", stdin=text.encode())

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self._home), "--kill", "all"], check=True)

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run([*self._gpg, *arguments], input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


@dataclass
class Archive:
    """One archive with one suite; `publish` signs what was added and serves it."""

    server: Server
    root: str
    suite: str
    stanzas: list[str] = field(default_factory=list)
    origin: str = "Debian"
    machine: str = field(default_factory=architecture)
    """Whose packages they are, in Debian's word."""

    @property
    def url(self) -> str:
        return self.server.url + self.root

    def add(self, name: str, version: str, *, path: str = "", **fields: str) -> None:
        """Add a binary package; more fields as ``Depends="a, b"``, dashes as underscores."""
        plain = version.rpartition(":")[2]
        path = path or f"pool/main/{name[0]}/{name}/{name}_{plain}_{self.machine}.deb"
        lines = {"Package": name, "Version": version, "Architecture": self.machine, "Filename": path}
        lines |= {"Size": str(len(path)), "SHA256": hashlib.sha256(path.encode()).hexdigest()}
        lines |= {key.replace("_", "-"): value for key, value in fields.items()}
        self.stanzas.append("".join(f"{key}: {value}\n" for key, value in lines.items() if value))

    def publish(self, key: Key | None, *, date: str = DATE, valid_until: str = "") -> None:
        """Serve the indexes; without a key, unsigned."""
        packages = "\n".join(self.stanzas).encode()
        path = f"main/binary-{self.machine}/Packages"
        release = (
            f"Origin: {self.origin}\nLabel: Debian\nSuite: stable\nCodename: {self.suite}\nDate: {date}\n"
            + (f"Valid-Until: {valid_until}\n" if valid_until else "")
            + f"Architectures: {self.machine}\nComponents: main\n"
            f"SHA256:\n {hashlib.sha256(packages).hexdigest()} {len(packages)} {path}\n"
        )
        dist = f"{self.root}/dists/{self.suite}"
        self.server.add(f"{dist}/{path}", packages)
        if key is None:
            self.server.add(f"{dist}/Release", release.encode())
        else:
            self.server.add(f"{dist}/InRelease", key.sign(release))
