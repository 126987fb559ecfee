from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.errors import RequestError
from reprobuild.request.model import Request, default_name
from support.strategies import requests

FULL = """
name = "a-b2"
python = "3.12"
cuda = "12.1"
torch = "2.4.1"
packages = ["pandas", "numpy<2", "pandas"]
apt = ["git", "curl", "git"]
as-of = 2024-09-15
[base]
debian = "trixie"
[determinism]
profile = "portable"
seed = 7
threads = 4
"""


def test_every_field_is_read_and_sorted() -> None:
    assert Request.parse(FULL, "a.toml") == Request(
        name="a-b2",
        python="3.12",
        cuda="12.1",
        torch="2.4.1",
        packages=("numpy<2", "pandas"),
        apt=("curl", "git"),
        as_of=date(2024, 9, 15),
        suite="trixie",
        profile="portable",
        seed=7,
        threads=4,
    )


def test_only_cuda_is_needed() -> None:
    assert Request.parse('cuda = "12.1"', "a.toml") == Request(name="torch-cu121", cuda="12.1")


@pytest.mark.parametrize(
    ("cuda", "python", "name"),
    [
        ("12.1", "3.11", "torch-cu121"),
        ("cpu", "3.11", "torch-cpu"),
        ("13.0", "3.13", "torch-cu130-py313"),
    ],
)
def test_the_default_name(cuda: str, python: str, name: str) -> None:
    assert default_name(cuda, python) == name


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("colour = 1", "colour", "unknown key"),
        ("[base]\nlayers = 'x'", "base.layers", "unknown key"),
        ("[base]\nimage = 'A b'", "base.image", "is not a valid image"),
        ("[base]\nimage = 'x'\ndebian = 'trixie'", "base.debian", "cannot be combined"),
        ("[base]\nallow-cuda = true", "base.allow-cuda", "needs base.image"),
        ("[base]\nimage = 'x'\nallow-cuda = 1", "base.allow-cuda", "true or false"),
        ("[determinism]\nseeds = 1", "determinism.seeds", "unknown key"),
        ("[elsewhere]", "elsewhere", "unknown key"),
        ("cuda = 12.1", "cuda", "text in quotes"),
        ("cuda = '12'", "cuda", "'12' is not"),
        ("cuda = '012.1'", "cuda", "'012.1' is not"),
        ("cuda = '12.1\\n'", "cuda", "is not"),
        ("cuda = 'CPU'", "cuda", "'CPU' is not"),
        ("cuda = '\u0661\u0662.\u0661'", "cuda", "is not"),
        ("python = 3.11", "python", "text in quotes"),
        ("python = '3.11.4'", "python", "is not a valid python"),
        ("name = 'A'", "name", "is not a valid name: expected lower-case"),
        ("name = 'a--b'", "name", "is not a valid name: expected lower-case"),
        ("name = '../a'", "name", "is not a valid name: expected lower-case"),
        ("name = ''", "name", "is not a valid name: expected lower-case"),
        ("name = true", "name", "text in quotes"),
        ("torch = 2", "torch", "text in quotes"),
        ("torch = '2.*'", "torch", "is not a valid torch"),
        ("torch = '===2'", "torch", "is not a valid torch"),
        ("torch = ''", "torch", "is not a valid torch"),
        (f"torch = '{'1' * 5000}'", "torch", "is not a valid torch"),
        ("packages = 'numpy'", "packages", "a list"),
        ("packages = ['numpy', 1]", "packages[1]", "expected text in quotes"),
        ("packages = ['numpy', 'a b']", "packages[1]", "is not a PEP 508 requirement"),
        ("packages = ['--index-url=x']", "packages[0]", "is not a PEP 508 requirement"),
        (
            "packages = ['a @ https://packages.example.org/a.whl']",
            "packages[0]",
            "its last part is not the file name of a wheel",
        ),
        (
            "packages = ['a @ https://u:secret@packages.example.org/a-1-py3-none-any.whl']",
            "packages[0]",
            "it contains a user name",
        ),
        ("packages = ['a @ /etc']", "packages[0]", "write a folder as a path relative to"),
        ('loosened = ["a\\nb"]', "loosened[0]", "expected one line of text"),
        ("packages = ['Torch<3']", "packages[0]", "torch has a key of its own"),
        ("apt = {}", "apt", "a list"),
        ("apt = ['git', 'Git']", "apt[1]", "is not a valid name of a Debian package"),
        ("apt = ['-o=x']", "apt[0]", "is not a valid name of a Debian package"),
        ("apt = ['git=1.0']", "apt[0]", "is not a valid name of a Debian package"),
        ("as-of = '2024-09-15'", "as-of", "a date without quotes"),
        ("as-of = 2024-09-15T00:00:00Z", "as-of", "a date without quotes"),
        ("base = 'bookworm'", "base", "a table"),
        ("[base]\ndebian = 12", "base.debian", "text in quotes"),
        ("[base]\ndebian = 'Debian 12'", "base.debian", "is not a valid debian: expected a release"),
        ("determinism = 1", "determinism", "a table"),
        ("[determinism]\nprofile = 'lax'", "determinism.profile", "'lax' is not"),
        ("[determinism]\nseed = '1'", "determinism.seed", "a whole number"),
        ("[determinism]\nseed = true", "determinism.seed", "a whole number"),
        ("[determinism]\nseed = 1.0", "determinism.seed", "a whole number"),
        ("[determinism]\nseed = -1", "determinism.seed", "-1 is out of range: expected 0 to 4294967295"),
        (
            "[determinism]\nseed = 4294967296",
            "determinism.seed",
            "is out of range: expected 0 to 4294967295",
        ),
        ("environment = 'A=b'", "environment", "a table"),
        ("[environment]\nA = 1", "environment.A", "one line of text"),
        ("[environment]\nA = 'b\u2028c'", "environment.A", "one line of text"),
        (f"[environment]\nA = '{'x' * 5000}'", "environment.A", "one line of text"),
        ("[environment]\n'A B' = 'c'", "environment.A B", "is not a variable's name"),
        ("[environment]\n'A=B' = 'c'", "environment.A=B", "is not a variable's name"),
        ("[environment]\na = 'c'", "environment.a", "is not a variable's name: expected upper-case"),
        ("[environment]\nA = '$HOME'", "environment.A", "which a Dockerfile would expand"),
        ("[environment]\nPATH = '/x'", "environment.PATH", "reprobuild sets PATH itself"),
        ("[environment]\nNCCL_ALGO = 'Tree'", "environment.NCCL_ALGO", "reprobuild sets NCCL_ALGO itself"),
        ("[environment]\nREPROBUILD_X = 'y'", "environment.REPROBUILD_X", "reprobuild sets"),
        (
            "[environment]\nTORCHINDUCTOR_MAX_AUTOTUNE = '1'",
            "environment.TORCHINDUCTOR",
            "changes how numbers",
        ),
        ("[environment]\nLD_PRELOAD = '/x.so'", "environment.LD_PRELOAD", "runs other code before every"),
        ("[environment]\nPYTHONPATH = '/x'", "environment.PYTHONPATH", "runs other code before every"),
        ("[environment]\nBASH_ENV = '/x'", "environment.BASH_ENV", "runs other code before every"),
        ("[environment]\nOPENSSL_CONF = '/x'", "environment.OPENSSL_CONF", "runs other code before every"),
        ("[environment]\nOPENSSL_MODULES = '/x'", "environment.OPENSSL_MODULES", "runs other code before"),
        ("[environment]\nLOCPATH = '/x'", "environment.LOCPATH", "runs other code before every"),
        ("[environment]\nOMP_TOOL_LIBRARIES = '/x'", "environment.OMP_TOOL_LIBRARIES", "runs other code"),
        ("[environment]\nINTEL_LIBITTNOTIFY64 = '/x'", "environment.INTEL_LIBITTNOTIFY64", "runs other code"),
        (
            "[environment]\nCUDA_INJECTION64_PATH = '/x'",
            "environment.CUDA_INJECTION64_PATH",
            "runs other code",
        ),
        (
            "[environment]\nNCCL_NET_PLUGIN = 'x'",
            "environment.NCCL_NET_PLUGIN",
            "runs other code before every",
        ),
        (
            "[environment]\nONEDNN_DEFAULT_FPMATH_MODE = 'BF16'",
            "environment.ONEDNN_",
            "how numbers are computed",
        ),
        ("[environment]\nMKL_ENABLE_INSTRUCTIONS = 'SSE4_2'", "environment.MKL_", "how numbers are computed"),
        ("[environment]\nX = 'https://me:word@index.example/'", "environment.X", "holds a password"),
        ("environment = {" + ", ".join(f"A{n} = ''" for n in range(65)) + "}", "environment", "more than 64"),
        ("[determinism]\nthreads = 0", "determinism.threads", "0 is out of range: expected 1 to 1024"),
    ],
)
def test_a_bad_value_is_named_with_its_place(text: str, place: str, says: str) -> None:
    text = text if text.startswith("cuda") else f"cuda = '12.1'\n{text}"
    with pytest.raises(RequestError) as error:
        Request.parse(text, "envs/a.toml")
    assert error.value.message.startswith(f"envs/a.toml: {place}")
    assert says in error.value.message


@pytest.mark.parametrize("text", ["cuda = ", "x" * 10, "a = " + "[" * 5000, "a = " + "1" * 5000, "\0", "'"])
def test_what_is_no_toml_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r"^envs/a\.toml: not valid TOML"):
        Request.parse(text, "envs/a.toml")


def test_a_missing_cuda_says_what_to_give() -> None:
    with pytest.raises(RequestError, match=r'^a\.toml: cuda: missing; give .* "12\.1", or "cpu"$'):
        Request.parse("python = '3.11'", "a.toml")


def test_an_unknown_key_s_hint_lists_the_known_ones() -> None:
    with pytest.raises(RequestError) as error:
        Request.parse("cuda = '12.1'\n[base]\nsuite = 'x'", "a.toml")
    assert error.value.hint == "known keys: debian, image, allow-cuda"


@given(requests)
def test_dump_is_read_back_to_an_equal_request(request: Request) -> None:
    again = Request.parse(request.dump(), "again")
    assert again == request
    assert (again.digest, again.dump()) == (request.digest, request.dump())
    assert request.differences(again) == []


@given(st.permutations(["numpy<2", "pandas", "a"]), st.permutations(["git", "curl"]))
def test_order_says_nothing(packages: list[str], apt: list[str]) -> None:
    table: dict[str, Any] = {"apt": apt, "packages": packages, "cuda": "12.1"}
    sorted_ = Request.from_dict(
        {"cuda": "12.1", "packages": ["a", "numpy<2", "pandas"], "apt": ["curl", "git"]}, "b"
    )
    assert Request.parse(tomli_w.dumps(table), "a").digest == sorted_.digest


@pytest.mark.parametrize("torch", ["2.4.1", "v2.4.1", " 2.4.1 "])
def test_spellings_of_a_version_are_one(torch: str) -> None:
    assert Request.from_dict({"cuda": "12.1", "torch": torch}, "a").torch == "2.4.1"


def test_the_digest_is_stable() -> None:
    # Locks carry it: a change here makes every lock out of date.
    expected = "sha256:78f8b2b60f855e4aa5be98d7502f2ad1dc9bb13d6e17dca117b95e7d6e47c45c"
    assert Request(name="torch-cu121", cuda="12.1").digest == expected


@given(requests, requests)
def test_differing_requests_differ_in_digest_and_say_where(one: Request, other: Request) -> None:
    assert (one == other) == (one.digest == other.digest) == (not one.differences(other))


def test_differences_name_key_and_values() -> None:
    one = Request(name="a", cuda="12.1", torch="2.4.1")
    other = Request(name="a", cuda="13.0", threads=2)
    assert one.differences(other) == [
        "cuda: 12.1, there 13.0",
        "determinism.threads: 1, there 2",
        "torch: 2.4.1, there not set",
    ]


@given(st.text())
def test_garbage_raises_its_own_error_and_no_other(text: str) -> None:
    with pytest.raises(RequestError):
        Request.parse(text, "a.toml")


toml_values = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans(), st.floats(), st.dates()),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
KEYS = ["name", "python", "cuda", "torch", "packages", "apt", "as-of", "base", "determinism"]


@given(st.sampled_from(KEYS), toml_values)
def test_any_type_anywhere_is_read_or_refused_in_its_place(key: str, value: Any) -> None:
    message = f"a: {key}"
    try:
        Request.from_dict({"cuda": "12.1", key: value}, "a")
    except RequestError as error:
        message = error.message
    assert message.startswith(f"a: {key}")


@pytest.mark.parametrize(
    ("keys", "suite"),
    [
        ({}, "bookworm"),
        ({"python": "3.13"}, "trixie"),
        ({"python": "3.13", "base": {"debian": "bookworm"}}, "bookworm"),
        ({"python": "3.13", "conda": {"channels": ["a"], "packages": ["b"]}}, "bookworm"),
    ],
)
def test_the_release_fits_the_python_where_none_is_named(keys: dict[str, Any], suite: str) -> None:
    assert Request.from_dict({"cuda": "12.1", **keys}, "").suite == suite


def test_platforms_and_index_stand_in_the_request_only_where_they_are_named() -> None:
    bare = Request.from_dict({"cuda": "12.1"}, "")
    assert not {"platforms", "index"} & bare.to_dict().keys()
    named = Request.from_dict(
        {"cuda": "12.1", "platforms": ["linux/arm64", "linux/amd64", "linux/arm64"], "index": "pytorch"}, ""
    )
    assert (named.platforms, named.index) == (("linux/amd64", "linux/arm64"), "pytorch")
    assert Request.parse(named.dump(), "again") == named
    assert named.digest != bare.digest
    assert bare.differences(named) == [
        "index: not set, there pytorch",
        "platforms: not set, there ['linux/amd64', 'linux/arm64']",
    ]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("platforms", "linux/amd64", "a.toml: platforms: expected a list"),
        ("platforms", ["linux/amd64", 3], "a.toml: platforms[1]: expected text in quotes"),
        ("platforms", ["linux/amd64", "arm64"], "a.toml: platforms[1]: 'arm64' is not one of linux/amd64"),
        ("index", "https://h.example/whl", "a.toml: index: 'https://h.example/whl' is not a valid index"),
        ("index", ["pytorch"], "a.toml: index: expected text in quotes"),
    ],
)  # fmt: skip
def test_bad_platforms_and_indexes(key: str, value: object, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        Request.from_dict({"cuda": "12.1", key: value}, "a.toml")
    assert caught.value.message.startswith(message)
