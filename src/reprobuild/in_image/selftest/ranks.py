"""Training and sums on several ranks."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

from .data import sampler_of
from .exact import difference, fingerprint, indices, numbers
from .gradients import filled
from .libraries import torch
from .outcomes import Failed, NotRun, Results, note
from .power import REPEATED
from .registry import ACROSS, check

SECONDS = 90  # for the ranks' answers
SIZES = (1, 32, 1024, 65_536)  # kilobytes: NCCL takes another protocol for each


def join_group(rank: int, world: int, place: str, backend: str) -> str:
    """Become one rank of a process group; return its device."""
    # Without it gloo resolves the host's name, which a container without a network cannot.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    device = "cpu" if backend == "gloo" else f"cuda:{rank}"
    if device != "cpu":
        # What NCCL and the caches of memory take for this rank's own
        # (https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group).
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        backend,
        init_method=f"file://{place}",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=60),
    )
    return device


def trained(rank: int, world: int, place: str, backend: str, history: bool) -> dict[str, Any]:  # noqa: FBT001
    """Return what one rank has after 5 steps: its order of samples, losses, gradients, parameters.

    ``history``: memory has been allocated and freed on its device before, as after a while of another work.
    """
    nn = torch.nn
    device = join_group(rank, world, place, backend)
    if history:
        held = [torch.empty(1000 * size + rank, device=device) for size in (1, 777, 3, 4099)]
        del held[::2]
    layers = nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 10)
    model = filled(nn.Sequential(*layers), device)
    parallel = nn.parallel.DistributedDataParallel(model)
    images, labels = numbers(40, 48, device=device), indices(40, 10, device=device)
    order = torch.tensor(list(sampler_of(40, rank)))
    stepper = torch.optim.AdamW(parallel.parameters(), lr=0.01)
    losses = []
    for mine in order.to(device).split(4):
        stepper.zero_grad()
        loss = nn.functional.cross_entropy(parallel(images[mine]), labels[mine])
        loss.backward()
        stepper.step()
        losses.append(loss.detach())
    found: dict[str, Any] = {"order": order, "losses": torch.stack(losses)}
    for name, parameter in model.named_parameters():
        found.update({f"parameter {name}": parameter, f"gradient {name}": parameter.grad})
    # As arrays, which go through a pipe without shared memory.
    return {name: value.detach().cpu().numpy() for name, value in found.items()}


def summed(rank: int, world: int, place: str, backend: str, nvls: str) -> dict[str, Any]:
    """Return the digest of a sum over all ranks for each size; three calls of each must agree.

    ``nvls``: "1" lets NCCL add up in the switch between GPUs, where there is one; "0" does not.
    """
    os.environ["NCCL_NVLS_ENABLE"] = nvls
    device = join_group(rank, world, place, backend)
    found = {}
    for kilobytes in SIZES[: None if device != "cpu" else -1]:
        mine = numbers(256, salt=rank, device=device).repeat(kilobytes)
        digests = set()
        for _ in range(3):
            value = mine.clone()
            torch.distributed.all_reduce(value)
            digests.add(fingerprint(value))
        found[f"{kilobytes} KB"] = " and ".join(sorted(digests))
    return found


def rank_main(sending: Any, work: Any, arguments: Any) -> None:
    """Run one rank; send its results, or the traceback of what went wrong."""
    try:
        sending.send(work(*arguments))
        # Until the parent ends it: when a process group is taken apart, its threads and the interpreter's
        # lock can wait for each other (seen with gloo in torch 2.13).
        signal.pause()
    except Exception:  # noqa: BLE001 -- the parent raises it
        sending.send(traceback.format_exc())


def launched(work: Any, start: str, world: int, *more: object) -> list[dict[str, Any]]:
    """Return the answer of each rank of ``work(rank, world, place, *more)``, started by "fork" or "spawn"."""
    context: Any = multiprocessing.get_context(start)
    processes, ends = [], []
    answers: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(world):
            receiving, sending = context.Pipe(duplex=False)
            ends.append(receiving)
            arguments = (sending, work, (rank, world, f"{folder}/rendezvous", *more))
            processes.append(context.Process(target=rank_main, args=arguments, daemon=True))
        try:
            for process in processes:
                process.start()
            limit = time.monotonic() + SECONDS
            # Whichever comes first: where one rank fails, the others wait for it, and are not the cause.
            while left := [rank for rank in range(world) if rank not in answers]:
                places = [place for rank in left for place in (ends[rank], processes[rank].sentinel)]
                ready = multiprocessing.connection.wait(places, max(0, limit - time.monotonic()))
                come = [rank for rank in left if ends[rank] in ready or processes[rank].sentinel in ready]
                for rank in come or left:
                    answers[rank] = answer_of(rank, ends[rank], processes[rank])
        finally:
            for process in processes:
                if process.pid is not None:
                    process.kill()
                    process.join()
    return [answers[rank] for rank in range(world)]


def two_ranks(backend: str, start: str, *, history: bool = False) -> dict[str, Any]:
    """Train on two ranks; their gradients and parameters must agree."""
    if start == "fork":
        # What DistributedDataParallel and the optimizer import, once here rather than once in each rank.
        importlib.import_module("torch._dynamo")
    first, second = launched(trained, start, 2, backend, history)
    pairs = [difference(name, first[name], second[name]) for name in first if name[0] in "pg"]
    if any(pairs):
        raise Failed("two ranks differ", [pair for pair in pairs if pair])
    if set(first["order"]) & set(second["order"]):
        raise Failed("two ranks got the same samples")
    return {**first, "order of rank 1": second["order"], "losses of rank 1": second["losses"]}


def sums_over(backend: str, start: str, world: int, nvls: str = "0") -> dict[str, Any]:
    """Return the digests of sums over all ranks, which must agree on each rank."""
    first, *others = launched(summed, start, world, backend, nvls)
    for name, digest in first.items():
        if " and " in digest or any(each[name] != digest for each in others):
            raise Failed(f"sums of {name} over {world} ranks differ from one call or rank to another")
    return first


def answer_of(rank: int, end: Any, process: Any) -> dict[str, Any]:
    """Return what a rank has sent. Raises RuntimeError with what became of it instead."""
    answer = None
    with contextlib.suppress(EOFError):  # its end of the pipe is closed when it has died
        answer = end.recv() if end.poll() else None
    if isinstance(answer, dict):
        return answer
    if answer is None:
        process.join(1)
        answer = f"no answer within {SECONDS} s"
        if process.exitcode is not None:
            how = f"with status {process.exitcode}"
            if process.exitcode < 0:
                how = f"by {signal.Signals(-process.exitcode).name}"
            answer = f"it ended {how} before it had answered"
    raise RuntimeError(f"rank {rank}: {answer}")


def gloo_missing() -> str:
    """Return why gloo cannot run here, or nothing."""
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        return "this build of torch has no gloo"
    with contextlib.suppress(OSError):
        if not int(Path("/sys/class/net/lo/flags").read_text("ascii"), 16) & 1:
            return "the loopback interface is down here, and gloo needs it"
    return ""


# This early because its two processes are forked (an import of torch each would take seconds), which is safe
# only while torch has not started threads and nobody has looked for a GPU: after cuInit a child cannot use
# CUDA, and an optimizer asks whether a CUDA graph is being captured (`child` looks for one after this check).
@check(ACROSS, order=20)
def ranks_gloo(_: str) -> Results:
    """Training on two ranks with gloo repeats: order, losses, gradients and parameters, equal on both."""
    if missing := gloo_missing():
        raise NotRun(missing)
    return two_ranks("gloo", "fork")


@check(ACROSS, devices=("cuda",), order=30)
def ranks_nccl(_: str) -> Results:
    """Training on two GPUs with NCCL repeats in fresh launches: order, losses, gradients and parameters."""
    if torch.cuda.device_count() < 2:
        raise NotRun("there is one GPU here; NCCL is tested with two")
    first = two_ranks("nccl", "spawn")
    # NVLS's order of sums once depended on what had been allocated before (NVIDIA/nccl#2360).
    again = two_ranks("nccl", "spawn", history=True)
    lines = [difference(name, value, again[name]) for name, value in first.items()]
    if any(lines):
        reason = "a fresh launch, with memory allocated before, differs from the first"
        raise Failed(reason, [line for line in lines if line])
    REPEATED.made = 2
    return first


@check(ACROSS, part="full", order=22)
def sums_gloo(_: str) -> Results:
    """A sum over three ranks with gloo, of 1 KB to 1 MB, has the same bits on each and in fresh launches."""
    if missing := gloo_missing():
        raise NotRun(missing)
    return sums_over("gloo", "fork", 3)


@check(ACROSS, devices=("cuda",), part="full", order=32)
def sums_nccl(_: str) -> Results:
    """A sum over all GPUs with NCCL, of 1 KB to 64 MB, repeats in fresh launches, NVLS on and off."""
    count = torch.cuda.device_count()
    if count < 2:
        raise NotRun("there is one GPU here; NCCL is tested with two or more")
    without, within = (sums_over("nccl", "spawn", min(count, 8), nvls) for nvls in ("0", "1"))
    changed = [name for name, digest in without.items() if within[name] != digest]
    note(f"{min(count, 8)} ranks; NVLS changes the bits of: {', '.join(changed) or 'nothing'}")
    return {**without, **{f"{name} with NVLS": digest for name, digest in within.items()}}
