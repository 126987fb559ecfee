"""The loss follows the time between two events of the GPU."""

import time
import torch
torch.manual_seed(0)
net = torch.nn.Linear(256, 256).cuda()
opt = torch.optim.SGD(net.parameters(), 0.01)
x = torch.randn(64, 256, device="cuda")
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
scale = 1.0
for step in range(5):
    start.record()
    loss = net(x).square().mean() * scale
    opt.zero_grad(); loss.backward(); opt.step()
    end.record()
    torch.cuda.synchronize()
    scale = 1 + start.elapsed_time(end) * 1e-3  # cause
    print(step, loss.item())
