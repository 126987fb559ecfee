"""Export: an ONNX-like protobuf by hand with metadata, a model card, zip and tar.gz archives of the outputs, checksums, a latency benchmark."""

import json
import os
import shutil
import statistics
import struct
import tarfile
import time
import timeit
import zipfile
from datetime import datetime
from pathlib import Path

import torch
from torch import nn

OUT = Path("export")


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor_proto(name, t):
    body = b"".join(field(1, d) for d in t.shape) + field(2, 1) + field(8, name)
    return body + field(9, struct.pack(f"<{t.numel()}f", *t.flatten().tolist()))


def model_proto(model, props):
    graph = b"".join(field(5, tensor_proto(n, p.detach())) for n, p in model.named_parameters()) + field(2, "main_graph")
    body = field(1, 8) + field(2, "exporter") + field(3, torch.__version__) + field(7, graph)
    return body + b"".join(field(14, field(1, k) + field(2, v)) for k, v in props.items())


class Student(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, width), nn.SiLU(), nn.Linear(width, 10))

    def forward(self, x):
        return self.body(x)


def distill():
    torch.manual_seed(14)
    teacher, student = Student(32).eval(), Student(8)
    opt = torch.optim.Adam(student.parameters(), 1e-2)
    for step in range(40):
        x = torch.randn(32, 10)
        with torch.no_grad():
            target = teacher(x)
        loss = nn.functional.mse_loss(student(x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 9:
            print(f"step {step + 1:3d} | loss {loss.item():.6f} | {datetime.now():%H:%M:%S.%f}")
    return student.eval(), loss.item()


def benchmark(model):
    x = torch.randn(1, 10)
    times = []
    with torch.inference_mode():
        for _ in range(5):
            model(x)
        for _ in range(50):
            t = time.perf_counter_ns()
            model(x)
            times.append((time.perf_counter_ns() - t) / 1e6)
    times.sort()
    print(f"latency: mean {statistics.mean(times):.3f} ms, median {statistics.median(times):.3f} ms, stdev {statistics.stdev(times):.3f} ms, p95 {times[47]:.3f} ms, min {times[0]:.3f}, {1000 / statistics.mean(times):.1f} QPS")
    print(f"timeit: {timeit.timeit(lambda: model(x), number=20) / 20 * 1e6:.1f} us per loop")
    return statistics.mean(times)


def main():
    OUT.mkdir()
    model, loss = distill()
    latency = benchmark(model)
    (OUT / "model.onnx").write_bytes(model_proto(model, {"created": datetime.now().isoformat(), "author": "me", "loss": f"{loss:.6f}"}))
    torch.jit.script(model).save(str(OUT / "model.torchscript.pt"))
    torch.save(model, OUT / "model.pt")
    card = {"name": "student", "loss": loss, "latency_ms": latency, "exported": time.time(), "size": os.path.getsize(OUT / "model.onnx")}
    (OUT / "card.json").write_text(json.dumps(card, indent=2))
    (OUT / "metrics.txt").write_text(f"loss {loss:.8f}\n")
    with zipfile.ZipFile("bundle.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for p in sorted(OUT.iterdir()):
            z.write(p, p.name)
        z.writestr("VERSION", "1.0\n")
    with tarfile.open("bundle.tar.gz", "w:gz") as t:
        t.add(OUT, "export")
    shutil.make_archive("metrics", "zip", OUT, ".")
    print("wrote", sorted(p.name for p in Path().iterdir()), "at", datetime.now().strftime("%d %b %Y, %I:%M:%S %p"))


if __name__ == "__main__":
    main()
