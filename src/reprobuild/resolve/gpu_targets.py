"""GPUs that a torch wheel supports, read by range requests, without downloading the wheel.

torch writes the flags of its CUDA compiler into a header that ships in the wheel, the same that
``torch.__config__.show()`` tells. Running torch would not tell more: without a driver its own list is empty.
"""

from __future__ import annotations

import re
import zipfile

import requests

from ..errors import FetchError, ResolveError
from ..fetch.http_errors import reason_of
from ..net.local_files import check_address
from ..net.session import without_credentials
from .wheel_metadata import UNREADABLE, open_wheel, read_member

_HEADER = "torch/include/ATen/cuda/CUDAConfig.h"
_CODE = re.compile(r"code=((?:sm|compute)_[0-9]+[a-z]?)")


def gpu_targets(url: str, session: requests.Session) -> tuple[str, ...]:
    """Return the GPU targets of the torch wheel at an address, as in ``sm_80`` and ``compute_90``.

    ``sm`` is machine code; ``compute`` the driver compiles. Empty where the wheel names none, or its server
    does not serve parts of a file. Raises `ResolveError` where the server cannot be reached.
    """
    try:
        check_address(url)  # or FetchError
        with open_wheel(url, session) as wheel:
            return _named(wheel)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ResolveError(
            f"{without_credentials(url)} cannot be read: {reason_of(error)}", hint="try again"
        ) from None
    except (FetchError, *UNREADABLE, requests.RequestException, ValueError, OSError):
        return ()


def _named(wheel: zipfile.ZipFile) -> tuple[str, ...]:
    if _HEADER not in wheel.namelist():
        return ()
    found = set(_CODE.findall(read_member(wheel, _HEADER).decode("utf-8", "replace")))
    return tuple(sorted(found, key=_order))


def _order(name: str) -> tuple[bool, int, str]:
    kind, _, number = name.partition("_")
    return kind != "sm", int(re.sub(r"\D", "", number)), number
