"""Run apt in a private root, with verified archive signatures, where nothing is installed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from shutil import copyfile
from urllib.parse import unquote

from debian.deb822 import Deb822

from ..errors import ResolveError
from ..fetch.debian_mirrors import MAIN, OVERRIDES, Mirror, apt_config
from ..fetch.debian_snapshot import VARIABLE as SNAPSHOT
from ..host.machine_errors import refuse_full_temporary
from ..host.os_reasons import clock_remedy
from ..host.process import Completed, ProcessTimeout, require, run
from ..lock.packages import DebianPackage
from ..net.index_settings import ca_bundle, proxy_environment
from ..net.session import scrub, without_credentials

_TIMEOUT = 900.0
_KEPT_SETTINGS = re.compile(
    r"Acquire::(https?(::.*)?|Retries|ForceIPv[46]|Check-Valid-Until) ", re.IGNORECASE
)
_PROGRESS = re.compile(r"(Get|Hit|Ign):[0-9]|(Reading|Building) .*\.\.\.")
_URI = re.compile(r"'([^']+)' (\S+_\S+_\S+\.deb) \d+ .*")


class Apt:
    """A private apt root below a folder; made with nothing but directories and a configuration.

    ``architecture`` is Debian's name of one; apt needs none of its programs. ``installed`` is dpkg's status
    file of a system on which the packages go; empty: on nothing. ``dated``: the mirrors are a state of the
    past.
    """

    def __init__(
        self,
        folder: Path,
        suite: str,
        mirrors: Mapping[str, Sequence[Mirror]],
        *,
        architecture: str,
        installed: str,
        dated: bool,
    ) -> None:
        self._folder, self._suite, self._installed, self._dated = folder, suite, installed, dated
        self._get = require("apt-get", "to resolve Debian packages")
        self._cache = require("apt-cache", "to resolve Debian packages")
        self._mirrors = {key: list(values) for key, values in mirrors.items()}
        self._architecture = architecture
        self._layout()

    def update(self) -> None:
        """Download and verify the indexes, then drop mirrors that are not Debian archives."""
        result = self._run([self._get, "update"])
        if result.returncode != 0:
            raise self._unread(legible(result))
        self._drop_others()

    def _unread(self, text: str) -> ResolveError:
        refuse_full_temporary(text, self._folder)
        # A Release file that could not be fetched is "not signed" too, in apt's words.
        if re.search(r"GPG error|NO_PUBKEY|BADSIG", text) or (
            "is not signed" in text and "Failed to fetch" not in text
        ):
            return ResolveError(
                f"the signature of Debian {self._suite} could not be verified:\n{text}",
                hint=clock_remedy(
                    text, "install the package debian-archive-keyring, or correct signed-by in apt's sources"
                ),
            )
        if "does not have a Release file" in text and self._dated:
            return ResolveError(
                f"the snapshot server has no Debian {self._suite} for that day:\n{text}",
                hint=f"correct as-of or base.debian in the request, or the address in {SNAPSHOT}",
            )
        if "does not have a Release file" in text:
            return ResolveError(
                f"apt's mirrors have no Debian {self._suite}:\n{text}",
                hint=f"correct the code name in base.debian, or name another mirror in {OVERRIDES[MAIN]}",
            )
        return ResolveError(
            f"the index of Debian {self._suite} could not be read:\n{text}",
            hint=clock_remedy(text, f"try `apt-get update`, or name another mirror in {OVERRIDES[MAIN]}"),
        )

    def _drop_others(self) -> None:
        # A maker's own repository can be called "bookworm main" like Debian's; its Release file tells.
        form = "$(REPO_URI)|$(ORIGIN)"
        output = self._run([self._get, "indextargets", "--format", form, "Created-By: Packages"]).stdout
        origins = dict(line.rsplit("|", 1) for line in output.decode().splitlines())
        others = {url.rstrip("/") for url, origin in origins.items() if origin != "Debian"}
        for key, values in self._mirrors.items():
            self._mirrors[key] = [s for s in values if s.named or s.url not in others]
        if not self._mirrors[MAIN]:
            raise ResolveError(
                f"none of apt's sources of {self._suite} is a Debian archive",
                hint=f"name a mirror of it in {OVERRIDES[MAIN]}",
            )
        self._write_sources()

    def states(self) -> dict[str, datetime]:
        """Return the time of what the archives have, as they have signed it, by the name of each suite."""
        found = {}
        for file in sorted((self._folder / "state/lists").glob("*Release")):
            fields = Deb822(file.read_bytes())
            name = f"{fields.get('Label', '')} {fields.get('Codename', '')}".strip()
            try:
                found[name] = parsedate_to_datetime(fields["Date"])
            except (KeyError, ValueError):
                found[name] = datetime.max.replace(tzinfo=UTC)
        return found

    def releases(self) -> list[str]:
        """Return the SHA-256 of each archive's signed list, as the mirrors gave it."""
        lists = sorted((self._folder / "state/lists").glob("*_InRelease"))
        return [sha256(file.read_bytes()).hexdigest() for file in lists]

    def names(self) -> list[str]:
        """Return the names of all packages of the archives."""
        result = self._run([self._cache, "pkgnames"])
        return sorted(result.stdout.decode().split())

    def prefer(self, versions: Mapping[str, str]) -> None:
        """Make apt choose these versions where they are offered, even over newer ones."""
        stanzas = [
            f"Package: {name}\nPin: version {version}\nPin-Priority: 1001\n"
            for name, version in sorted(versions.items())
        ]
        self._write("preferences", "\n".join(stanzas))

    def plan(self, targets: Sequence[str]) -> Completed:
        """Query apt for the files of an installation on an empty system."""
        return self._run([self._get, "install", "--print-uris", "-q", "--yes", "--no-remove", *targets])

    def packages(self, plan: str, *, none: bool) -> tuple[DebianPackage, ...]:
        """Turn the addresses that apt printed into packages, with what the signed index says of each.

        ``none``: that may be no package at all.
        """
        lines = [form for line in plan.splitlines() if (form := _URI.fullmatch(line))]
        if none and not lines:
            return ()
        files: dict[str, str] = {form[2]: form[1] for form in lines}
        specs = [_spec(filename) for filename in files]
        shown = self._run([self._cache, "show", *specs])
        if shown.returncode != 0 or not files:
            raise ResolveError(
                f"apt's index of Debian {self._suite} cannot be read:\n{legible(shown)}",
                hint=f"name another mirror in {OVERRIDES[MAIN]}",
            )
        records: dict[tuple[str, str, str], list[Deb822]] = {}
        for record in Deb822.iter_paragraphs(shown.stdout, use_apt_pkg=False):
            records.setdefault((record["Package"], record["Version"], record["Architecture"]), []).append(
                record
            )
        found = []
        for filename, uri in files.items():
            candidates = records.get(_parts(filename), [])
            found.append(self._package(filename, unquote(without_credentials(uri)), candidates))
        return tuple(found)

    def _package(self, filename: str, uri: str, records: Sequence[Deb822]) -> DebianPackage:
        for key, values in self._mirrors.items():
            for mirror in values:
                root = without_credentials(mirror.url) + "/"
                for record in records:
                    if uri == root + record["Filename"] and record.get("SHA256"):
                        return DebianPackage(
                            name=record["Package"],
                            version=record["Version"],
                            architecture=record["Architecture"],
                            archive=key,
                            path=record["Filename"],
                            sha256=record["SHA256"],
                            size=int(record["Size"]),
                        )
        raise ResolveError(
            f"Debian's index has no SHA256 of {filename}", hint=f"name another mirror in {OVERRIDES[MAIN]}"
        )

    def _run(self, argv: Sequence[str]) -> Completed:
        env = {key: value for key, value in os.environ.items() if key != "LANGUAGE"}
        env |= proxy_environment()
        env |= {"APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        # Where it splits signed files, which are "not signed" where that is full. It takes /tmp in place of a
        # folder that its own user may not write to.
        env["TMPDIR"] = str(self._folder / "tmp")
        try:
            return run(argv, env=env, cwd=self._folder, timeout=_TIMEOUT, check=False)
        except ProcessTimeout as error:
            mirrors = sorted({without_credentials(m.url) for each in self._mirrors.values() for m in each})
            raise ResolveError(
                f"{error}; a mirror of Debian {self._suite} may be slow: {', '.join(mirrors)}",
                hint=f"try again, or name another mirror in {OVERRIDES[MAIN]}",
            ) from None

    def _layout(self) -> None:
        folder = self._folder
        for name in ("state/lists/partial", "cache/archives/partial", "sources", "none"):
            (folder / name).mkdir(parents=True)
        # apt downloads as a user of its own, who must be able to pass, whatever our umask is.
        for path in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
            path.chmod(0o755)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        lines = [
            f'Dir::Etc::main "{folder}/none/apt.conf";',
            f'Dir::Etc::parts "{folder}/none";',
            f'Dir::Etc::sourcelist "{folder}/none/sources.list";',
            f'Dir::Etc::sourceparts "{folder}/sources";',
            f'Dir::Etc::preferences "{folder}/preferences";',
            f'Dir::Etc::preferencesparts "{folder}/none";',
            f'Dir::State "{folder}/state";',
            f'Dir::State::status "{folder}/status";',
            f'Dir::Cache "{folder}/cache";',
            f'APT::Architecture "{self._architecture}";',
            f'APT::Architectures {{ "{self._architecture}"; }};',
            'APT::Install-Recommends "false";',
            'APT::Update::Error-Mode "any";',
            'Acquire::Languages "none";',
            'Acquire::Retries "3";',
            *self._authorities(),
            *_host_settings(),
            # A state of the past has a date up to which it was valid, and that has gone by.
            *(['Acquire::Check-Valid-Until "false";'] if self._dated else []),
        ]
        if not all(parent.stat().st_mode & 0o001 for parent in folder.parents):
            lines.append('APT::Sandbox::User "root";')
        self._write("apt.conf", "\n".join(lines) + "\n")
        self._write("status", self._installed)
        self._write_sources()

    def _authorities(self) -> Iterator[str]:
        """Yield apt's setting for CA certificates, where a variable or pip's setting names some.

        A copy, which the user that apt downloads as can read.
        """
        bundle = ca_bundle()
        if bundle is not None and bundle.is_file():
            path = self._folder / "ca.pem"
            try:
                copyfile(bundle, path)
            except OSError as error:
                refuse_full_temporary(f"{error.strerror}", self._folder)
                raise ResolveError(
                    f"{bundle}: {error.strerror}", hint="correct the CA file's setting"
                ) from None
            path.chmod(0o644)
            yield f'Acquire::https::CAInfo "{path}";'

    def _write_sources(self) -> None:
        # debian before debian-security whatever the host's order: a file that both have is then always
        # locked with the same path.
        stanzas = [
            f"Types: deb\nURIs: {mirror.url}\nSuites: {' '.join(mirror.suites)}\nComponents: main\n"
            + (f"Signed-By: {mirror.signed_by}\n" if mirror.signed_by else "")
            for key in sorted(self._mirrors)
            for mirror in self._mirrors[key]
        ]
        self._write("sources/debian.sources", "\n".join(stanzas))

    def _write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.touch(mode=0o600)
        path.write_text(text, "utf-8")


def _host_settings() -> Iterator[str]:
    """Yield the host's proxies and the like, in the form of apt.conf(5)."""
    yield from (line for line in apt_config("dump").splitlines() if _KEPT_SETTINGS.match(line))


def _parts(filename: str) -> tuple[str, str, str]:
    name, version, architecture_ = filename.removesuffix(".deb").split("_")
    return name, unquote(version), architecture_


def _spec(filename: str) -> str:
    name, version, _ = _parts(filename)
    return f"{name}={version}"


def legible(result: Completed) -> str:
    """Return apt's errors and warnings, without its progress output."""
    text = scrub((result.stdout + b"\n" + result.stderr).decode("utf-8", "replace"))
    lines = [line for line in text.splitlines() if line.strip() and not _PROGRESS.match(line)]
    return "\n".join(lines[-15:])
