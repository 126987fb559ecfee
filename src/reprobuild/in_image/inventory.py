"""Say, as JSON on standard output, which Python this is and which distributions it can import.

``python3 -c "$(cat inventory.py)"`` runs it in any image. ``{"python": "3.11", "cuda": "12.1", "packages":
[{"name", "version", "direct"}]}``; ``cuda`` is what torch was built for, ``"cpu"``, or null without torch;
``direct`` tells that the distribution came from an address or a folder. Standard library only; torch is not
imported, since that needs the driver's good will and seconds.
"""

import importlib.metadata
import importlib.util
import json
import os
import re
import sys


def cuda() -> "str | None":
    """Return the CUDA that torch's own version file names."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return None
    try:
        with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123 -- Python 3.6 to 3.14 alike
            found = re.search(r"^cuda\b[^=\n]*= *['\"]([0-9]+\.[0-9]+)", file.read(), re.MULTILINE)
    except OSError:
        return None
    return found.group(1) if found else "cpu"


def packages() -> "list[dict[str, object]]":
    """Return the distributions, each once: the first on the path is the one that is imported."""
    found: dict[str, dict[str, object]] = {}
    for each in importlib.metadata.distributions():
        name = each.metadata["Name"]
        if name:
            direct = each.read_text("direct_url.json") is not None
            found.setdefault(name, {"name": name, "version": each.version, "direct": direct})
    return [found[name] for name in sorted(found)]


json.dump(
    {"python": "{}.{}".format(*sys.version_info[:2]), "cuda": cuda(), "packages": packages()}, sys.stdout
)
