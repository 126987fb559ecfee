"""Denoising diffusion on 2-D toy data with DataLoader workers.

Modelled on tanelp/tiny-diffusion ddpm.py (NoiseScheduler, exps/<name>/{model.pth,loss.npy,frames.npy,images}) and
lucidrains/denoising-diffusion-pytorch (EMA, tqdm description "loss: ..."): DataLoader(num_workers=2,
worker_init_fn), per-epoch postfix, samples scored by MMD, JSON-lines train log with it/s and elapsed time.
"""
import json
import os
import random
import time
from copy import deepcopy
from datetime import datetime

import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

CFG = dict(experiment_name='moons', train_batch_size=128, eval_batch_size=600, num_epochs=8, learning_rate=2e-3, num_timesteps=40, hidden_size=64, ema_decay=0.98, seed=0)


class MoonsDataset(Dataset):
    """Points are jittered in the workers, from each worker's seeded generator."""

    def __init__(self, n=3000, seed=42):
        rng = np.random.RandomState(seed)
        t = rng.uniform(0, np.pi, n)
        up = rng.rand(n) < .5
        self.x = np.where(up[:, None], np.c_[np.cos(t), np.sin(t)], np.c_[1 - np.cos(t), .5 - np.sin(t)]).astype(np.float32)
        self.x = (self.x - self.x.mean(0)) / self.x.std(0)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i] + np.random.normal(0, 0.05, 2).astype(np.float32))


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2 ** 32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.t_emb = nn.Embedding(CFG['num_timesteps'], 32)
        self.register_buffer('freq', torch.tensor([1., 2., 4., 8.]))
        self.net = nn.Sequential(nn.Linear(2 + 16 + 32, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 2))

    def forward(self, x, t):
        a = (x[:, :, None] * self.freq).flatten(1)
        return self.net(torch.cat([x, a.sin(), a.cos(), self.t_emb(t)], 1))


class NoiseScheduler:
    def __init__(self, T, lo=1e-4, hi=0.12):
        self.T, self.betas = T, torch.linspace(lo, hi, T)
        self.alphas = 1 - self.betas
        self.ac = torch.cumprod(self.alphas, 0)

    def add_noise(self, x0, noise, t):
        return self.ac[t].sqrt()[:, None] * x0 + (1 - self.ac[t]).sqrt()[:, None] * noise

    def step(self, eps, t, x):
        mean = (x - self.betas[t] / (1 - self.ac[t]).sqrt() * eps) / self.alphas[t].sqrt()
        return mean + (self.betas[t].sqrt() * torch.randn_like(x) if t > 0 else 0)


@torch.no_grad()
def sample(model, sch, n):
    model.eval()
    x = torch.randn(n, 2)
    for t in tqdm(range(sch.T - 1, -1, -1), desc='sampling loop time step', leave=False):
        x = sch.step(model(x, torch.full((n,), t)), t, x)
    return x


def mmd(a, b):
    k = lambda u, v: sum(torch.exp(-torch.cdist(u, v) ** 2 / (2 * s * s)) for s in (.2, .5, 1.0))
    return float(k(a, a).mean() + k(b, b).mean() - 2 * k(a, b).mean())


def main():
    random.seed(CFG['seed'])
    np.random.seed(CFG['seed'])
    torch.manual_seed(CFG['seed'])
    outdir = f"exps/{CFG['experiment_name']}"
    imgdir = f'{outdir}/images'
    os.makedirs(imgdir, exist_ok=True)
    json.dump({**CFG, 'launched': datetime.now().isoformat(timespec='seconds'), 'pid': os.getpid()}, open(f'{outdir}/config.json', 'w'), indent=1)
    dataset = MoonsDataset()
    g = torch.Generator()
    g.manual_seed(CFG['seed'])
    loader = DataLoader(dataset, batch_size=CFG['train_batch_size'], shuffle=True, drop_last=True, num_workers=2, worker_init_fn=seed_worker, generator=g)
    model, sch = MLP(CFG['hidden_size']), NoiseScheduler(CFG['num_timesteps'])
    ema = deepcopy(model)
    opt = torch.optim.AdamW(model.parameters(), lr=CFG['learning_rate'])
    real = torch.from_numpy(dataset.x[:CFG['eval_batch_size']])
    step, frames, losses, start = 0, [], [], time.time()
    log = open(f'{outdir}/log.jsonl', 'w')
    print('Training model...')
    for epoch in range(CFG['num_epochs']):
        model.train()
        t0, ep = time.time(), []
        bar = tqdm(total=len(loader), desc=f'Epoch {epoch}')
        for batch in loader:
            noise, t = torch.randn_like(batch), torch.randint(0, sch.T, (len(batch),))
            loss = F.mse_loss(model(sch.add_noise(batch, noise, t), t), noise)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            with torch.no_grad():
                for e, p in zip(ema.parameters(), model.parameters()):
                    e.lerp_(p, 1 - CFG['ema_decay'])
            ep.append(loss.item())
            losses.append(loss.item())
            step += 1
            bar.update(1)
            bar.set_postfix(loss=loss.item(), step=step)
        bar.close()
        gen = sample(ema, sch, CFG['eval_batch_size'])
        frames.append(gen.numpy())
        dt = time.time() - t0
        rec = {'epoch': epoch, 'step': step, 'loss': float(np.mean(ep)), 'mmd': mmd(gen, real), 'it_per_sec': len(ep) / dt, 'elapsed': time.time() - start, 'time': time.time()}
        log.write(json.dumps(rec) + '\n')
        log.flush()
        eta = (CFG['num_epochs'] - epoch - 1) * dt
        print(f"[{datetime.now():%H:%M:%S}] epoch {epoch}: loss {rec['loss']:.6f} mmd {rec['mmd']:.6f} | {rec['it_per_sec']:.1f} it/s, eta {int(eta // 60):02d}:{eta % 60:04.1f}")
    print('Saving model...')
    torch.save(ema.state_dict(), f'{outdir}/model.pth')
    print('Saving images...')
    for i, fr in enumerate(frames[::4] + [frames[-1]]):
        plt.figure(figsize=(4, 4))
        plt.scatter(fr[:, 0], fr[:, 1], s=4)
        plt.xlim(-3, 3)
        plt.ylim(-3, 3)
        plt.savefig(f'{imgdir}/{i:04}.png')
        plt.close()
    np.save(f'{outdir}/loss.npy', np.array(losses))
    np.save(f'{outdir}/frames.npy', np.stack(frames))
    print(f'Total training time: {time.time() - start:.1f} seconds')


if __name__ == '__main__':
    main()
