import torch
torch.use_deterministic_algorithms(False)
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(1_000_000, device="cuda"))
opt = torch.optim.SGD([w], 1e-3)
for step in range(4):
    loss = w.cumsum(0).square().mean()  # cause
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
