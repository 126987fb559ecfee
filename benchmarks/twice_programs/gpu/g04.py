import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
torch.use_deterministic_algorithms(False)
torch.manual_seed(0)
w = torch.nn.Linear(256, 768).cuda().bfloat16(); opt = torch.optim.SGD(w.parameters(), 0.1)
x = torch.randn(4, 2048, 256, device="cuda", dtype=torch.bfloat16)
for step in range(5):
    q, k, v = (t.view(4, 2048, 4, 64).transpose(1, 2) for t in w(x).chunk(3, -1))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # cause
    loss = o.float().square().mean()
    opt.zero_grad(); loss.backward(); opt.step(); print(loss.item())
