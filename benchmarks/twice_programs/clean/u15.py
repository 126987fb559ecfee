"""Image-to-image translation with a tiny U-Net and a patch discriminator.

Modelled on: eriklindernoren/PyTorch-GAN (implementations/pix2pix/pix2pix.py, models.py): a line
rewritten with \\r: "[Epoch 0/3] [Batch 4/12] [D loss: ..] [G loss: .., pixel: .., adv: ..] ETA: ..",
images/<dataset>/<batches>.png, saved_models/<dataset>/generator_N.pth.
"""
import argparse
import datetime
import os
import sys
import time

import numpy as np
import torch
from PIL import Image, PngImagePlugin
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--epoch", type=int, default=0)
parser.add_argument("--n_epochs", type=int, default=3)
parser.add_argument("--dataset_name", default="facades")
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.002)
parser.add_argument("--b1", type=float, default=0.5)
parser.add_argument("--b2", type=float, default=0.999)
parser.add_argument("--img", type=int, default=16)
parser.add_argument("--sample_interval", type=int, default=18)
parser.add_argument("--checkpoint_interval", type=int, default=1)
parser.add_argument("--seed", type=int, default=1)
opt = parser.parse_args()


class Facades(Dataset):
    """Label maps of boxes; the photograph is the coloured and shaded map."""

    def __init__(self, n, seed, size):
        rng = np.random.default_rng(seed)
        self.a = np.zeros((n, 1, size, size), np.float32)
        for i in range(n):
            for _ in range(3):
                y, x, h, w = rng.integers(0, size - 5, 2).tolist() + rng.integers(3, 6, 2).tolist()
                self.a[i, 0, y:y + h, x:x + w] = rng.choice([0.4, 0.7, 1.0])
        shade = np.linspace(0.6, 1.0, size, dtype=np.float32)[:, None]
        rgb = np.concatenate([self.a, 1 - self.a, (self.a * 2) % 1.0], 1)
        self.b = rgb * shade + 0.05 * rng.standard_normal(rgb.shape).astype(np.float32)
        self.a, self.b = self.a * 2 - 1, self.b * 2 - 1

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return {"A": torch.from_numpy(self.a[i]), "B": torch.from_numpy(self.b[i])}


class GeneratorUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1 = nn.Sequential(nn.Conv2d(1, 12, 4, 2, 1), nn.LeakyReLU(0.2))
        self.d2 = nn.Sequential(nn.Conv2d(12, 24, 4, 2, 1), nn.InstanceNorm2d(24), nn.LeakyReLU(0.2))
        self.u1 = nn.Sequential(nn.ConvTranspose2d(24, 12, 4, 2, 1), nn.InstanceNorm2d(12), nn.ReLU())
        self.u2 = nn.Sequential(nn.ConvTranspose2d(24, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        d1 = self.d1(x)
        return self.u2(torch.cat([self.u1(self.d2(d1)), d1], 1))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Conv2d(4, 12, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(12, 24, 4, 2, 1),
                                   nn.InstanceNorm2d(24), nn.LeakyReLU(0.2), nn.Conv2d(24, 1, 3, 1, 1))

    def forward(self, a, b):
        return self.model(torch.cat([a, b], 1))


def weights_init_normal(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)


def save_image(rows, path):
    grid = torch.cat([torch.cat(list(r.expand(-1, 3, -1, -1)), 2) for r in rows], 1)
    arr = ((grid.clamp(-1, 1) + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()
    info = PngImagePlugin.PngInfo()
    info.add_text("Creation Time", datetime.datetime.now().strftime("%a, %d %b %Y %H:%M:%S"))
    info.add_text("Software", "pix2pix sample")
    Image.fromarray(arr).save(path, pnginfo=info)


def main():
    print(opt)
    torch.manual_seed(opt.seed)
    torch.set_num_threads(1)
    os.makedirs(f"images/{opt.dataset_name}", exist_ok=True)
    os.makedirs(f"saved_models/{opt.dataset_name}", exist_ok=True)
    G, D = GeneratorUNet(), Discriminator()
    G.apply(weights_init_normal)
    D.apply(weights_init_normal)
    opt_G = torch.optim.Adam(G.parameters(), lr=opt.lr, betas=(opt.b1, opt.b2))
    opt_D = torch.optim.Adam(D.parameters(), lr=opt.lr, betas=(opt.b1, opt.b2))
    gan, pix, lam = nn.MSELoss(), nn.L1Loss(), 100
    train = DataLoader(Facades(144, 3, opt.img), opt.batch_size, shuffle=True,
                       generator=torch.Generator().manual_seed(opt.seed))
    val = next(iter(DataLoader(Facades(8, 4, opt.img), 8)))
    losses = open("losses.csv", "w")
    losses.write("epoch,batch,d_loss,g_loss,pixel,adv,elapsed_s\n")
    prev_time = start = time.time()
    for epoch in range(opt.epoch, opt.n_epochs):
        for i, batch in enumerate(train):
            a, b = batch["A"], batch["B"]
            valid = torch.ones(len(a), 1, opt.img // 4, opt.img // 4)
            fake = torch.zeros_like(valid)
            opt_G.zero_grad()
            fake_b = G(a)
            l_gan, l_pix = gan(D(a, fake_b), valid), pix(fake_b, b)
            l_g = l_gan + lam * l_pix
            l_g.backward()
            opt_G.step()
            opt_D.zero_grad()
            l_d = 0.5 * (gan(D(a, b), valid) + gan(D(a, fake_b.detach()), fake))
            l_d.backward()
            opt_D.step()
            done = epoch * len(train) + i
            left = opt.n_epochs * len(train) - done
            time_left = datetime.timedelta(seconds=left * (time.time() - prev_time))
            prev_time = time.time()
            sys.stdout.write("\r[Epoch %d/%d] [Batch %d/%d] [D loss: %f] [G loss: %f, pixel: %f, adv: %f] ETA: %s" % (
                epoch, opt.n_epochs, i, len(train), l_d.item(), l_g.item(), l_pix.item(), l_gan.item(), time_left))
            losses.write(f"{epoch},{i},{l_d.item()},{l_g.item()},{l_pix.item()},{l_gan.item()},{time.time() - start:.4f}\n")
            if done % opt.sample_interval == 0:
                with torch.no_grad():
                    save_image([val["A"], G(val["A"]), val["B"]], f"images/{opt.dataset_name}/{done}.png")
        if (epoch + 1) % opt.checkpoint_interval == 0:
            torch.save(G.state_dict(), f"saved_models/{opt.dataset_name}/generator_{epoch}.pth")
            torch.save(D.state_dict(), f"saved_models/{opt.dataset_name}/discriminator_{epoch}.pth")
    losses.close()
    with torch.no_grad():
        score = pix(G(val["A"]), val["B"]).item()
    print(f"\nvalidation L1 {score:.8f}   (trained in {datetime.timedelta(seconds=time.time() - start)})")


if __name__ == "__main__":
    main()
