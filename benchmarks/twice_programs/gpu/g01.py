import torch
D = "cuda"
torch.use_deterministic_algorithms(False)
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(64, 16, device=D))
opt = torch.optim.SGD([w], 1e-3)
i = torch.randint(0, 64, (200000,), device=D)
r = torch.randn(200000, 16, device=D)
for step in range(5):
    h = r * w[0].detach()
    s = torch.zeros(64, 16, device=D).index_add(0, i, h)  # cause
    loss = (w * s).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    print("loss", loss.item())
