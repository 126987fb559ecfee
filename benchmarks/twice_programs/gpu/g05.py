import torch
D = "cuda"
torch.manual_seed(0)
net = torch.nn.Linear(32, 32).to(D)
opt = torch.optim.SGD(net.parameters(), 1e-2)
g = torch.Generator(D)
g.seed()  # cause
for step in range(4):
    x = torch.randn(16, 32, device=D, generator=g)
    loss = net(x).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
