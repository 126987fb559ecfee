"""What runs before the program does, or in a locked module's place."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from torch_python import need_torch, torch_python

from reprobuild.layers.image_documents import file_manifest
from reprobuild.oci.tar_writer import Record
from reprobuild.verify import startup
from reprobuild.verify.check import check_tree, is_kept
from reprobuild.verify.context import Context
from reprobuild.verify.startup import is_read_at_start
from support.conda_archives import conda_package
from support.locks import LOCK
from support.trees import CUDA, SITE, image

STANDARD = "usr/lib/python3.11"
BASE = b"".join(
    f"file\t644\ta\t/{path}\n".encode()
    for path in sorted([f"{SITE}/torch/__init__.py", f"{SITE}/torch/a.py", f"{STANDARD}/random.py", CUDA])
)


def found(path: str, text: str = "", /, *more: Record, **env: str) -> list[tuple[str, str, str]]:
    """What `check` says of an image with one more file, and perhaps other records."""
    named = [line.split(b"\t")[3].decode()[1:] for line in BASE.splitlines()]
    records = [Record(name, "file", 0o644, "a") for name in named] + [Record(path, "file", 0o644, "x"), *more]
    whole = image(*records, env=env)
    kept = {**whole.kept, path: text.encode()} if is_kept(path, len(text)) else whole.kept
    tree = replace(whole, kept={**kept, "opt/reprobuild/manifest.tsv": BASE})
    return [(each.path, each.kind, each.first) for each in check_tree(tree, "x", BASE).differences]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{SITE}/zz.pth", "/app\nimport evil\n"),
        (f"{SITE}/zz.pth", "/app\rimport\tevil"),
        ("root/.local/lib/python3.11/site-packages/zz.pth", "import evil"),
        (f"{SITE}/sitecustomize.py", ""),
        ("app/sitecustomize.py", "import evil"),
        ("app/usercustomize/__init__.py", ""),
        ("app/sitecustomize.pyc", ""),
        ("app/sitecustomize.cpython-311-x86_64-linux-gnu.so", ""),
        ("etc/python3.11/sitecustomize.py", "import evil"),
        ("opt/venv/bin/pyvenv.cfg", ""),
        ("usr/bin/pybuilddir.txt", ""),
        ("usr/bin/Modules/Setup.local", ""),
        ("usr/bin/lib/python3.11/os.py", ""),
        ("usr/bin/lib/python311.zip", ""),
        ("usr/lib/python311.zip", ""),
        ("usr/lib/python311.zip/torch/__init__.py", ""),
        (f"{SITE}/zz.pth", "\ufeffimport evil\n"),
        (f"{SITE}/zz.pth", "# x\x0cimport evil\n"),
        ("etc/python3.11/sitecustomize.py", "# coding: unicode_escape\n# \\u000aimport evil\n"),
        ("etc/python3.11/sitecustomize.py", "# coding: utf-7\n# +AAo-import evil\n"),
        (f"{SITE}/evil-1.DIST-INFO/entry_points.txt", "[torch.backends]\nx = evil:x\n"),
        (f"{STANDARD}/evil-1.dist-info/entry_points.txt", "[triton.backends]\nx = evil:x\n"),
        ("etc/ld.so.preload", ""),
    ],
)
def test_what_runs_at_the_start_of_a_process_is_named(path: str, text: str) -> None:
    assert found(path, text) == [(f"/{path}", "runs at start", "")]


@pytest.mark.parametrize("program", ["opt/venv/bin/python", "usr/bin/python3.11", "app/mine"])
def test_a_path_file_beside_a_program_takes_the_place_of_the_whole_path(program: str) -> None:
    """Of each name by which Python may be started: CPython's ``Modules/getpath.py``, from 3.11 on."""
    named = f"/{program}._pth", "runs at start", ""
    assert named in found(f"{program}._pth", "/app\n", Record(program, "link", 0o777, "/usr/bin/python3"))
    assert found("app/other._pth", "/app\n") == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{SITE}/mine.pth", "# import x\n/app/src\n"),
        ("opt/tools/lib/python3.11/site-packages/_virtualenv.pth", "import _virtualenv"),
        ("etc/python3.11/sitecustomize.py", "# Empty\n"),
        (
            "etc/python3.11/sitecustomize.py",
            "try: import apport_python_hook\nexcept ImportError: pass\nelse: apport_python_hook.install()#",
        ),
        (f"{SITE}/humanise/__init__.py", ""),
        (f"{SITE}/humanise/__pycache__/a.cpython-311.pyc", ""),
        (f"{SITE}/pip/b/__init__.py", ""),
        ("app/random.py", ""),
    ],
)
def test_what_a_team_s_image_may_have(path: str, text: str) -> None:
    assert found(path, text) == []


def test_a_pth_file_that_could_not_be_read_counts_as_code() -> None:
    link = Record(f"{SITE}/zz.pth", "link", 0o777, "/app/zz.pth")
    [difference] = check_tree(image(link), "x").differences
    assert (difference.path, difference.kind) == (f"/{SITE}/zz.pth", "runs at start")
    assert is_read_at_start(f"{SITE}/zz.pth")


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE"],
)
def test_variables_that_put_other_code_into_a_process(name: str) -> None:
    [difference] = check_tree(image(env={name: "/app"}), "x").differences
    assert (difference.path, difference.kind, difference.second) == (f"Env {name}", "setting", "/app")


@pytest.mark.parametrize(
    ("path", "first"),
    [
        (f"{SITE}/torch/a.cpython-311-x86_64-linux-gnu.so", f"{SITE}/torch/a.py"),
        (f"{SITE}/torch/a/__init__.py", f"{SITE}/torch/a.py"),
        (f"{STANDARD}/random.abi3.so", f"{STANDARD}/random.py"),
        (f"{SITE}/torch/__pycache__/a.cpython-311.pyc", f"{SITE}/torch/a.py"),
        (f"{SITE}/torch/__pycache__/__init__.cpython-311.opt-1.pyc", f"{SITE}/torch/__init__.py"),
        (f"{STANDARD}/random.pyc", f"{STANDARD}/random.py"),
        (f"{SITE}/__pycache__/reprobuild_hook.cpython-311.pyc", f"{SITE}/reprobuild_hook.py"),
    ],
)
def test_a_module_in_the_place_of_a_locked_one(path: str, first: str) -> None:
    assert found(path) == [(f"/{path}", "shadows", f"/{first}")]


@pytest.mark.parametrize("text", ["/app", "/x:/app/", "app", "/app/../app:/y"])
def test_a_folder_of_modules_before_the_locked_ones(text: str) -> None:
    shadow = ("/app/random.py", "shadows", f"/{STANDARD}/random.py")
    assert found("app/random.py", PYTHONPATH=text) == [shadow]
    shadow = ("/app/random.pyc", "shadows", f"/{STANDARD}/random.py")
    assert found("app/random.pyc", PYTHONPATH=text) == [shadow]
    shadow = ("/app/torch/__init__.py", "shadows", f"/{SITE}/torch/__init__.py")
    assert found("app/torch/__init__.py", PYTHONPATH=text) == [shadow]
    assert found("app/train.py", PYTHONPATH=text) == []


def test_a_folder_of_libraries_before_the_locked_ones() -> None:
    path = "app/libcudart.so.12"
    assert (f"/{path}", "shadows", f"/{CUDA}") in found(path, LD_LIBRARY_PATH="/app")
    assert found("app/libmine.so.1", LD_LIBRARY_PATH="/app") == []


@pytest.mark.parametrize(
    "path",
    [
        f"opt/venv/{lib}/{folder}/zz.pth"
        for lib in ("lib", "local/lib")
        for folder in ("python3.11/dist-packages", "python3/dist-packages")
    ],
)
def test_every_folder_of_site_is_searched_for_pth_files(path: str) -> None:
    assert found(path, "import evil") == [(f"/{path}", "runs at start", "")]
    assert found(path, "/app") == []


def test_a_folder_of_site_that_is_a_link() -> None:
    link = Record("opt/venv/local", "link", 0o777, "/opt/mine")
    path = "opt/mine/lib/python3.11/dist-packages/zz.pth"
    assert (f"/{path}", "runs at start", "") in found(path, "import evil", link)


def test_a_back_end_that_torch_loads_by_itself() -> None:
    path = f"{SITE}/evil-1.dist-info/entry_points.txt"
    assert found(path, "[torch.backends]\nx = evil:start") == [(f"/{path}", "runs at start", "")]
    assert found(path, "[console_scripts]\nx = fine:start") == []


def test_a_folder_of_modules_behind_a_link() -> None:
    link = Record("app/link", "link", 0o777, "../opt/mine")
    shadow = ("/opt/mine/torch/__init__.py", "shadows", f"/{SITE}/torch/__init__.py")
    assert found("opt/mine/torch/__init__.py", "", link, PYTHONPATH="/app/link") == [shadow]


@pytest.mark.parametrize("text", ["/app/all.zip", "/app/all.zip/inside"])
def test_an_archive_of_modules_counts_as_code(text: str) -> None:
    assert found("app/all.zip", "", PYTHONPATH=text) == [("/app/all.zip", "runs at start", "")]


def test_a_module_in_the_working_folder() -> None:
    torch = Record("app/torch.py", "file", 0o644, "x")
    tree = image(Record(f"{SITE}/torch", "dir", 0o755, "-"), torch)
    config = {**tree.config, "WorkingDir": "/app"}
    assert [(d.path, d.kind) for d in check_tree(replace(tree, config=config), "x").differences] == [
        ("/app/torch.py", "shadows")
    ]


def test_a_module_in_an_earlier_folder_than_the_locked_one() -> None:
    path = f"{STANDARD}/torch.py"
    assert found(path) == [(f"/{path}", "shadows", f"/{SITE}/torch/__init__.py")]
    assert found(f"{SITE}/random.py") == []


def test_a_path_of_tens_of_thousands_of_parts_takes_no_time() -> None:
    parts = ":".join(["/a" * 20_000, *["x"] * 20_000])
    assert found("app/random.py", PYTHONPATH=parts) == []


def test_entry_points_beside_a_folder_that_a_path_file_names() -> None:
    path = "app/evil-1.dist-info/entry_points.txt"
    added = Record(f"{SITE}/zz.pth", "file", 0o644, "x")
    named = {f"{SITE}/zz.pth": "/app\n", path: "[torch.backends]\nx = evil:x\n"}
    assert found_with(named, added, Record(path, "file", 0o644, "x")) == [f"/{path}"]
    important = {f"{SITE}/zz.pth": "/important\n", f"important/{path[4:]}": named[path]}
    assert len(found_with(important, added, Record(f"important/{path[4:]}", "file", 0o644, "x"))) == 1
    named[f"{SITE}/zz.pth"], there = (
        "../importable \n",
        path.replace("app", f"{SITE.rpartition('/')[0]}/importable"),
    )
    assert found_with({**named, there: named[path]}, added, Record(there, "file", 0o644, "x")) == [
        f"/{there}"
    ]
    archive = Record("app/all.zip", "file", 0o644, "x")
    assert found_with({f"{SITE}/zz.pth": "/app/all.zip \t\r\n"}, added, archive) == [f"/{SITE}/zz.pth"]


def test_the_hook_that_ubuntu_s_sitecustomize_asks_for_counts() -> None:
    hook = "try:\n    import apport_python_hook\nexcept ImportError:\n    pass\nelse:\n"
    path, text = "etc/python3.11/sitecustomize.py", hook + "    apport_python_hook.install()\n"
    assert found(path, text) == []
    assert found(path, text, Record(f"{SITE}/apport_python_hook.py", "file", 0o644, "x")) != []


@pytest.mark.parametrize(
    "path", [f"{STANDARD}/torch", f"{SITE}/torch/a", f"{SITE}/torch/__pycache__", f"{SITE}/evil-1.dist-info"]
)
def test_a_link_in_a_package_s_place_is_named(path: str) -> None:
    link = Record(path, "link", 0o777, "/opt/mine")
    assert [each[0] for each in found("opt/mine/__init__.py", "", link)] == [f"/{path}"]


def test_a_module_that_a_locked_package_did_not_have_is_named() -> None:
    """NumPy imports such a module of its own if it is there."""
    path = f"{SITE}/torch/_distributor_init_local.py"
    assert found(path) == [(f"/{path}", "shadows", f"/{SITE}/torch/__init__.py")]


@pytest.mark.parametrize(
    "path",
    [
        f"{SITE}/debugpy/_vendored/pydevd/pydev_sitecustomize/sitecustomize.py",
        "opt/conda/lib/python3.12/sitecustomize.py",
    ],
)
def test_what_no_path_of_this_python_leads_to_is_left_alone(path: str) -> None:
    assert found(path) == []


def found_with(texts: dict[str, str], *more: Record) -> list[str]:
    """The paths that `check` names, of files with these texts."""
    named = [line.split(b"\t")[3].decode()[1:] for line in BASE.splitlines()]
    whole = image(*(Record(name, "file", 0o644, "a") for name in named), *more)
    kept = {**whole.kept, **{path: text.encode() for path, text in texts.items()}}
    tree = replace(whole, kept={**kept, "opt/reprobuild/manifest.tsv": BASE})
    return [each.path for each in check_tree(tree, "x", BASE).differences]


ENTRY_POINTS = f"{SITE}/more-1.dist-info/entry_points.txt"


@pytest.mark.parametrize(
    "text",
    [
        *("[networkx.backends]\nx = more:x\n", "[networkx.backend_info]\nx = more:x\n"),
        *("[networkx.plugins]\nx = more:x\n", "[ networkx.backends ]\nx = more:x\n"),
        *("[fsspec.specs]\nfile = more:X\n", "[fsspec.specs]\nhf = more:X\nlocal=more:X\n"),
    ],
)
def test_a_back_end_of_a_package_that_torch_needs(text: str) -> None:
    assert found(ENTRY_POINTS, text) == [(f"/{ENTRY_POINTS}", "runs at start", "")]


def test_entry_points_that_people_install_are_named_and_are_no_difference() -> None:
    def told(text: str) -> list[str]:
        whole = image(Record(ENTRY_POINTS, "file", 0o644, "x"))
        checked = check_tree(replace(whole, kept={**whole.kept, ENTRY_POINTS: text.encode()}), "x")
        assert checked.differences == []
        return checked.not_checked

    hub = "[console_scripts]\nhf = huggingface_hub.cli:main\n[fsspec.specs]\nhf = huggingface_hub:Files\n"
    assert told(hub) == [f"/{ENTRY_POINTS} (adds to fsspec.specs)"]
    # gymnasium, dask and vllm are not locked here: those who add them add what is added to them.
    others = "[gymnasium.envs]\nx = more:x\n[dask.array.backends]\nx = more:x\n"
    assert told("[console_scripts]\nvllm = vllm.cli:main\n" + others) == []


def test_a_linker_that_a_compiler_brings_hides_no_module() -> None:
    """Debian's libc-bin has ``/usr/bin/ld.so``, and binutils ``/usr/bin/ld``."""
    locked = [Record("usr/bin/ld.so", "link", 0o777, "/lib64/ld-linux-x86-64.so.2")]
    added = [
        Record("usr/bin/ld", "link", 0o777, "x86_64-linux-gnu-ld"),
        Record("usr/bin/x86_64-linux-gnu-ld", "file", 0o755, "x"),
    ]
    whole = image(*locked, *added)
    own = whole.kept["opt/reprobuild/manifest.tsv"] + file_manifest(locked)
    tree = replace(whole, kept={**whole.kept, "opt/reprobuild/manifest.tsv": own})
    assert check_tree(tree, "x", own).differences == []


@pytest.mark.parametrize(
    "path",
    [
        f"{SITE}/msvcrt.py",
        f"{SITE}/msvcrt.cpython-311-x86_64-linux-gnu.so",
        f"{SITE}/org/python/core.py",
        f"{SITE}/org/__init__.py",
        "usr/lib/python3.11/_winapi.py",
        "opt/venv/local/lib/python3.11/dist-packages/nt.py",
    ],
)
def test_a_module_that_the_standard_library_tries_to_import(path: str) -> None:
    """Such as `import msvcrt` in subprocess, which fails on Linux unless somebody puts one there."""
    assert found(path) == [(f"/{path}", "runs at start", "")]


@pytest.mark.parametrize(
    "path",
    [f"{SITE}/mine/msvcrt.py", "opt/other/msvcrt.py", f"{SITE}/organ/core.py", f"{SITE}/mine/org/a.py"],
)
def test_a_module_of_such_a_name_that_nothing_finds(path: str) -> None:
    assert found(path) == []


_OF_NO_EFFECT = frozenset(
    (
        *(
            "tqdm",
            "colorama",
            "tabulate",
            "pydot",
            "cuda",
            "pynvml",
            "monkeytype",
        ),  # shown to people, or asked
        *("redis", "z3"),  # a cache and a proof that only a variable turns on, which `check` names
        *("lz4", "snappy", "zstandard", "isal", "lzmaffi", "backports"),  # fsspec's compressions
        # Asked for by torch.compile so as to pass over their files (torch/_dynamo/trace_rules.py).
        *("fx2trt_oss", "hypothesis", "onnx", "onnxruntime", "onnx_tf", "pandas", "sklearn", "tensorflow"),
        *("tensorrt", "torch2trt", "tree", "xarray", "networkx"),
        *("_distutils_system_mod", "setuptools", "distutils"),
        *("scipy", "matplotlib", "PIL", "numba", "pytest", "_pytest", "yaml", "numpy"),
    )
)
"""Modules that torch looks for, and whose absence changes no number."""

_LOOKED_FOR = """
import sys
missing = set()
class Last:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if "." not in name:
            missing.add(name)
sys.meta_path.append(Last)
import torch, torch.distributed, torch.fx
at_import = set(missing)
x = torch.rand(4, 4, requires_grad=True)
torch.einsum("ij,jk->ik", x, x).sum().backward()
torch.optim.Adam([x]).step()
list(torch.utils.data.DataLoader(range(4)))
torch.nn.functional.scaled_dot_product_attention(*[torch.rand(1, 1, 4, 4)] * 3)
torch.compile(lambda x: x.sin().sum(), backend="aot_eager")(torch.rand(3))
print(*sorted(missing))
"""


@pytest.mark.slow
def test_what_torch_looks_for_and_does_not_find_is_judged() -> None:
    """Another release may look for others."""
    need_torch()
    done = subprocess.run([torch_python(), "-c", _LOOKED_FOR], capture_output=True, text=True, check=True)
    looked_for = set(done.stdout.split())
    assert {"msvcrt", "opt_einsum"} <= looked_for
    taken = {name for names in startup._TAKEN_WHERE_PRESENT.values() for name in names}
    assert looked_for - taken - startup._ELSEWHERE - _OF_NO_EFFECT == set()


def test_a_torch_of_conda_s_computes_with_the_same() -> None:
    conda = replace(conda_package(b"", "pytorch"), depends=("python",))
    lock = replace(LOCK, python=[p for p in LOCK.python if p.name != "torch"], conda=[conda])
    context = Context({}, image(Record(f"{SITE}/opt_einsum.py", "file", 0o644, "x")), lock)
    assert list(startup.unknown_helpers(context)) == [f"/{SITE}/opt_einsum.py (torch may compute with it)"]


def test_a_package_that_a_locked_one_computes_with_is_named() -> None:
    """torch.einsum orders its products by opt_einsum where that is installed."""
    path = f"{SITE}/opt_einsum/__init__.py"
    tree = image(Record(path, "file", 0o644, "x"), Record(f"{SITE}/mine/opt_einsum.py", "file", 0o644, "x"))
    checked = check_tree(tree, "x")
    assert checked.not_checked == [f"/{path} (torch may compute with it)"]
    assert checked.differences == []
