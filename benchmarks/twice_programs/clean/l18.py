"""
Train a VAE on simulated single-particle images and analyse the latent space.

Example usage
-------------
$ python train_vae.py -o vae_out --zdim 2 -n 5
"""
import argparse
import logging
import os
import pickle
import sys
from datetime import datetime as dt

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from torch.utils.data import DataLoader, TensorDataset

__version__ = "0.3.1"
logging.basicConfig(level=logging.INFO, format="(%(levelname)s) (%(filename)s) (%(asctime)s) %(message)s",
                    datefmt="%d-%b-%y %H:%M:%S")
logger = logging.getLogger(__name__)


def add_args(parser):
    parser.add_argument("-o", "--outdir", type=os.path.abspath, default="vae_out", help="Output directory")
    parser.add_argument("--zdim", type=int, default=2)
    parser.add_argument("--seed", type=int, default=4711)
    parser.add_argument("-n", "--num-epochs", type=int, default=5)
    parser.add_argument("-b", "--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--beta", type=float, default=0.05)
    parser.add_argument("--log-interval", type=int, default=512, help="Logging interval in N_IMGS")
    parser.add_argument("--n-images", type=int, default=1024)
    parser.add_argument("-D", "--box", type=int, default=24)
    return parser


def simulate(n, D, seed):
    """A dumbbell whose opening angle varies continuously, with noise."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, n)
    shift = rng.normal(0, 0.02, (n, 2))
    y, x = np.mgrid[-0.5:0.5:D * 1j, -0.5:0.5:D * 1j]
    imgs = np.zeros((n, D, D), np.float32)
    for sign in (-1, 1):
        cx = sign * 0.22 * np.cos(angle / 2) + shift[:, 0]
        cy = 0.22 * np.sin(angle / 2) + shift[:, 1]
        imgs += np.exp(-((x[None] - cx[:, None, None]) ** 2 + (y[None] - cy[:, None, None]) ** 2) / 0.008)
    imgs += rng.normal(0, 0.35, imgs.shape)
    return ((imgs - imgs.mean()) / imgs.std()).astype(np.float32), angle


class VAE(nn.Module):
    def __init__(self, D, zdim, qdim=128, pdim=128):
        super().__init__()
        self.D = D
        self.encoder = nn.Sequential(nn.Linear(D * D, qdim), nn.ReLU(), nn.Linear(qdim, qdim), nn.ReLU(),
                                     nn.Linear(qdim, 2 * zdim))
        self.decoder = nn.Sequential(nn.Linear(zdim, pdim), nn.ReLU(), nn.Linear(pdim, pdim), nn.ReLU(),
                                     nn.Linear(pdim, D * D))

    def encode(self, y):
        return self.encoder(y.flatten(1)).chunk(2, dim=1)

    def forward(self, y):
        mu, logvar = self.encode(y)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z).view(-1, self.D, self.D), mu, logvar


def loss_function(recon, y, mu, logvar, beta):
    gen_loss = F.mse_loss(recon, y)
    kld = torch.mean(-0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1))
    return gen_loss + beta * kld / mu.shape[1], gen_loss, kld


def eval_z(model, loader):
    model.eval()
    with torch.no_grad():
        out = [model.encode(y) for (y,) in loader]
    return torch.cat([o[0] for o in out]).numpy(), torch.cat([o[1] for o in out]).numpy()


def save_checkpoint(model, optim, epoch, z_mu, z_logvar, outdir):
    torch.save({"epoch": epoch, "model_state_dict": model.state_dict(), "optimizer_state_dict": optim.state_dict()},
               f"{outdir}/weights.{epoch}.pkl")
    with open(f"{outdir}/z.{epoch}.pkl", "wb") as f:
        pickle.dump(z_mu, f)
        pickle.dump(z_logvar, f)


def analyze(outdir, z, angle, model, n_clusters=6):
    pca = PCA(min(2, z.shape[1]))
    pc = pca.fit_transform(z)
    km = KMeans(n_clusters, n_init=3, random_state=0).fit(z)
    order = np.argsort(km.cluster_centers_[:, 0], kind="stable")
    centers = km.cluster_centers_[order]
    with torch.no_grad():
        vols = model.decoder(torch.from_numpy(centers.astype(np.float32))).numpy()
    np.save(f"{outdir}/kmeans_centers.npy", centers)
    np.save(f"{outdir}/kmeans_images.npy", vols)
    fig, ax = plt.subplots(figsize=(4, 3))
    s = ax.scatter(pc[:, 0], pc[:, -1], c=angle, s=3)
    fig.colorbar(s, label="true angle")
    ax.set_xlabel(f"PC1 ({pca.explained_variance_ratio_[0]:.2f})")
    fig.tight_layout()
    fig.savefig(f"{outdir}/z_pca.pdf")
    plt.close(fig)
    fig, axes = plt.subplots(1, n_clusters, figsize=(1.2 * n_clusters, 1.4))
    for a, v in zip(axes, vols):
        a.imshow(v.reshape(model.D, model.D), cmap="gray")
        a.axis("off")
    fig.savefig(f"{outdir}/kmeans.png", dpi=60)
    plt.close(fig)
    corr = [float(np.corrcoef(pc[:, i], angle)[0, 1]) for i in range(pc.shape[1])]
    logger.info(f"PCA explained variance ratio: {pca.explained_variance_ratio_}")
    logger.info(f"Correlation of PCs with the true angle: {corr}")


def main(args):
    os.makedirs(args.outdir, exist_ok=True)
    logger.addHandler(logging.FileHandler(f"{args.outdir}/run.log"))
    t1 = dt.now()
    logger.info(" ".join(sys.argv))
    logger.info(args)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    logger.info("Use cuda {}".format(torch.cuda.is_available()))
    imgs, angle = simulate(args.n_images, args.box, args.seed)
    logger.info(f"Loaded {len(imgs)} {args.box}x{args.box} images")
    data = TensorDataset(torch.from_numpy(imgs))
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
    eval_loader = DataLoader(data, batch_size=256)
    model = VAE(args.box, args.zdim)
    logger.info(model)
    logger.info("{} parameters in model".format(sum(p.numel() for p in model.parameters())))
    with open(f"{args.outdir}/config.pkl", "wb") as f:
        pickle.dump(dict(model_args=dict(D=args.box, zdim=args.zdim), seed=args.seed, lr=args.lr, cmd=sys.argv,
                         version=__version__, time=dt.now()), f)
    optim = torch.optim.Adam(model.parameters(), lr=args.lr)
    n_images = len(data)
    history = []
    for epoch in range(1, args.num_epochs + 1):
        t2 = dt.now()
        model.train()
        gen_accum = kld_accum = loss_accum = 0.0
        seen = 0
        for (y,) in loader:
            recon, mu, logvar = model(y)
            loss, gen_loss, kld = loss_function(recon, y, mu, logvar, args.beta)
            optim.zero_grad()
            loss.backward()
            optim.step()
            seen += len(y)
            gen_accum += gen_loss.item() * len(y)
            kld_accum += kld.item() * len(y)
            loss_accum += loss.item() * len(y)
            if seen % args.log_interval == 0:
                logger.info("# [Train Epoch: {}/{}] [{}/{} images] gen loss={:.6f}, kld={:.6f}, beta={:.6f}, loss={:.6f}"
                            .format(epoch, args.num_epochs, seen, n_images, gen_loss.item(), kld.item(), args.beta,
                                    loss.item()))
        logger.info("# =====> Epoch: {} Average gen loss = {:.6}, KLD = {:.6f}, total loss = {:.6f}; Finished in {}"
                    .format(epoch, gen_accum / n_images, kld_accum / n_images, loss_accum / n_images, dt.now() - t2))
        history.append((gen_accum / n_images, kld_accum / n_images, loss_accum / n_images))
    z_mu, z_logvar = eval_z(model, eval_loader)
    save_checkpoint(model, optim, args.num_epochs, z_mu, z_logvar, args.outdir)
    np.savetxt(f"{args.outdir}/loss.txt", np.array(history))
    analyze(args.outdir, z_mu, angle, model)
    td = dt.now() - t1
    logger.info("Finished in {} ({} per epoch)".format(td, td / args.num_epochs))


if __name__ == "__main__":
    main(add_args(argparse.ArgumentParser(description=__doc__)).parse_args())
