"""A Triton kernel whose programs add to one number in any order (Triton's documentation of atomic_add)."""

import torch
import triton
import triton.language as tl


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n)))


torch.manual_seed(0)
w = torch.nn.Linear(1024, 1024).cuda()
opt = torch.optim.SGD(w.parameters(), 1e-3)
x = torch.randn(512, 1024, device="cuda")
for step in range(5):
    y = w(x).contiguous()
    out = torch.zeros(1, device="cuda")
    total[(triton.cdiv(y.numel(), 256),)](y.detach(), out, y.numel(), BLOCK=256)  # cause
    loss = (y * out).square().mean() * 1e-6
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
