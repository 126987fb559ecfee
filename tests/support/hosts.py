"""This machine as the steps see it, without their talk."""

from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host


def quiet_host(home: Home | None = None) -> Host:
    """Return the host with its home, by default the environment's, that prints only warnings."""
    return Host(home or Home.from_environment(), Console(quiet=True))
