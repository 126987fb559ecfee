import torch
import torch.nn.functional as F
D = "cuda"
torch.use_deterministic_algorithms(False)
torch.manual_seed(0)
c = torch.nn.Conv2d(3, 8, 3, padding=1).to(D)
opt = torch.optim.Adam(c.parameters(), 1e-3)
x = torch.randn(8, 3, 64, 64, device=D)
for step in range(5):
    y = F.interpolate(c(x), scale_factor=3.7, mode="bicubic")  # cause
    loss = (y ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    print("step", step, loss.item())
