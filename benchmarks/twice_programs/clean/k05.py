"""Transformer LM / copy-translation training with fairseq logs.

Modelled on facebookresearch/fairseq fairseq_cli/train.py with --log-format json/simple:
"2024-01-01 10:00:00 | INFO | train_inner | {...}" lines with wps, ups, train_wall, wall;
checkpoints/checkpoint_best.pt keeping extra_state (previous_training_time, metrics), label-smoothed
cross entropy, inverse_sqrt schedule, max-tokens batching, then a fairseq-generate style output.
"""
import json
import logging
import math
import os
import random
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(format='%(asctime)s | %(levelname)s | %(name)s | %(message)s', datefmt='%Y-%m-%d %H:%M:%S',
                    level=logging.INFO, stream=sys.stdout)
logger = logging.getLogger('fairseq_cli.train')
PAD, EOS, V, D = 0, 1, 24, 48
cfg = dict(seed=1, max_epoch=5, max_tokens=600, lr=3e-3, warmup=40, clip_norm=1.0, label_smoothing=0.1, log_interval=20)


class Stopwatch:
    def __init__(self):
        self.total = 0.0

    def __enter__(self):
        self.t = time.perf_counter()

    def __exit__(self, *a):
        self.total += time.perf_counter() - self.t


def make_pairs(n, seed):
    rng = random.Random(seed)
    pairs = []
    for _ in range(n):
        src = [rng.randrange(2, V) for _ in range(rng.randint(4, 10))]
        pairs.append((src + [EOS], [2 + (t - 2 + 5) % (V - 2) for t in reversed(src)] + [EOS]))
    return pairs


def batches(pairs, max_tokens, seed):
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), i))
    out, cur = [], []
    for i in order:
        if cur and (len(cur) + 1) * len(pairs[i][0]) > max_tokens:
            out.append(cur)
            cur = []
        cur.append(i)
    out.append(cur)
    np.random.RandomState(seed).shuffle(out)
    return out


def collate(pairs, idx):
    L = max(len(pairs[i][0]) for i in idx)
    src, tgt, prev = (torch.full((len(idx), L), PAD) for _ in range(3))
    for r, i in enumerate(idx):
        s, t = pairs[i]
        src[r, :len(s)], tgt[r, :len(t)] = torch.tensor(s), torch.tensor(t)
        prev[r, :len(t)] = torch.tensor([EOS] + t[:-1])
    return src, prev, tgt


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(32, D)
        self.tr = nn.Transformer(D, 4, 1, 1, 96, dropout=0.1, batch_first=True)
        self.out = nn.Linear(D, V)

    def forward(self, src, prev):
        e = lambda x: self.emb(x) + self.pos(torch.arange(x.size(1)))
        mask = torch.triu(torch.ones(prev.size(1), prev.size(1), dtype=torch.bool), 1)
        h = self.tr(e(src), e(prev), tgt_mask=mask, src_key_padding_mask=src == PAD, memory_key_padding_mask=src == PAD)
        return self.out(h)


def criterion(model, batch, eps):
    src, prev, tgt = batch
    lp = F.log_softmax(model(src, prev), -1)
    keep = tgt != PAD
    nll = -lp.gather(-1, tgt.unsqueeze(-1)).squeeze(-1)[keep].sum()
    smooth = -lp.sum(-1)[keep].sum()
    return (1 - eps) * nll + eps / V * smooth, nll, int(keep.sum())


def main():
    torch.manual_seed(cfg['seed'])
    random.seed(cfg['seed'])
    np.random.seed(cfg['seed'])
    os.makedirs('checkpoints', exist_ok=True)
    logger.info(cfg)
    train, valid = make_pairs(1800, 1), make_pairs(200, 2)
    model = Seq2Seq()
    logger.info(f'task: translation, num. shared model params: {sum(p.numel() for p in model.parameters()):,}')
    opt = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98))
    wall0, updates, best = time.perf_counter(), 0, None
    for epoch in range(1, cfg['max_epoch'] + 1):
        logger.info(f'begin training epoch {epoch}')
        sw, acc, ep = Stopwatch(), dict(loss=0., nll=0., n=0, b=0, t=time.perf_counter()), dict(loss=0., nll=0., n=0)
        itr = batches(train, cfg['max_tokens'], cfg['seed'] + epoch)
        model.train()
        for i, idx in enumerate(itr, 1):
            with sw:
                loss, nll, ntok = criterion(model, collate(train, idx), cfg['label_smoothing'])
                opt.zero_grad()
                (loss / ntok).backward()
                gnorm = nn.utils.clip_grad_norm_(model.parameters(), cfg['clip_norm'])
                updates += 1
                lr = cfg['lr'] * min(updates / cfg['warmup'], math.sqrt(cfg['warmup'] / updates))
                opt.param_groups[0]['lr'] = lr
                opt.step()
            for k, v in (('loss', loss.item()), ('nll', nll.item()), ('n', ntok)):
                acc[k] += v
                ep[k] += v
            acc['b'] += len(idx)
            if updates % cfg['log_interval'] == 0:
                dt, m = time.perf_counter() - acc['t'], cfg['log_interval']
                logging.getLogger('train_inner').info(json.dumps({
                    'epoch': epoch, 'update': round(epoch - 1 + i / len(itr), 3), 'loss': '%.3f' % (acc['loss'] / acc['n'] / math.log(2)),
                    'nll_loss': '%.3f' % (acc['nll'] / acc['n'] / math.log(2)), 'ppl': '%.2f' % math.exp(acc['nll'] / acc['n']),
                    'wps': '%.1f' % (acc['n'] / dt), 'ups': '%.2f' % (m / dt), 'wpb': '%.1f' % (acc['n'] / m), 'bsz': '%.1f' % (acc['b'] / m),
                    'num_updates': str(updates), 'lr': '%g' % lr, 'gnorm': '%.3f' % gnorm.item(), 'train_wall': '%.0f' % sw.total,
                    'wall': '%.0f' % (time.perf_counter() - wall0)}))
                acc = dict(loss=0., nll=0., n=0, b=0, t=time.perf_counter())
        model.eval()
        logger.info('begin validation on "valid" subset')
        with torch.no_grad():
            tot = np.sum([[c.item() if hasattr(c, 'item') else c for c in criterion(model, collate(valid, b), 0.1)]
                          for b in batches(valid, cfg['max_tokens'], 0)], axis=0)
        vloss = float(tot[1] / tot[2] / math.log(2))
        best = vloss if best is None else min(best, vloss)
        logging.getLogger('valid').info(f'epoch {epoch:03d} | valid on \'valid\' subset | nll_loss {vloss:.3f} | ppl {2 ** vloss:.2f} | num_updates {updates} | best_nll_loss {best:.3f}')
        state = {'args': cfg, 'model': model.state_dict(), 'last_optimizer_state': opt.state_dict(),
                 'optimizer_history': [{'num_updates': updates}],
                 'extra_state': {'epoch': epoch, 'val_loss': vloss, 'best': best,
                                 'metrics': {'train_wall': sw.total, 'wall': time.perf_counter() - wall0},
                                 'previous_training_time': time.perf_counter() - wall0}}
        t0 = time.perf_counter()
        for name in ['checkpoint_last.pt'] + (['checkpoint_best.pt'] if vloss == best else []):
            torch.save(state, f'checkpoints/{name}')
        logging.getLogger('fairseq.checkpoint_utils').info(f'Saved checkpoint checkpoints/checkpoint_last.pt (epoch {epoch} @ {updates} updates, score {vloss:.3f}) (writing took {time.perf_counter() - t0:.6f} seconds)')
        logging.getLogger('train').info(f'epoch {epoch:03d} | loss {ep["loss"] / ep["n"] / math.log(2):.3f} | nll_loss {ep["nll"] / ep["n"] / math.log(2):.3f} | '
                                        f'wps {ep["n"] / max(sw.total, 1e-9):.1f} | train_wall {sw.total:.0f} | wall {time.perf_counter() - wall0:.0f}')
    logger.info(f'done training in {time.perf_counter() - wall0:.1f} seconds')

    t0, ntok, exact = time.perf_counter(), 0, 0
    with open('generate-valid.txt', 'w') as f, torch.no_grad():
        for i, (s, t) in enumerate(valid[:40]):
            src, prev, score = torch.tensor([s]), torch.tensor([[EOS]]), 0.0
            while prev.size(1) < 14:
                p, w = F.log_softmax(model(src, prev)[0, -1], -1).max(0)
                score += p.item()
                prev = torch.cat([prev, w.view(1, 1)], 1)
                if w.item() == EOS:
                    break
            hyp = prev[0, 1:].tolist()
            exact += hyp == t
            ntok += len(hyp)
            f.write(f'S-{i}\t{" ".join(map(str, s))}\nT-{i}\t{" ".join(map(str, t))}\nH-{i}\t{score / len(hyp)}\t{" ".join(map(str, hyp))}\n')
        dt = time.perf_counter() - t0
        line = f'Translated 40 sentences ({ntok:,} tokens) in {dt:.1f}s ({40 / dt:.2f} sentences/s, {ntok / dt:.2f} tokens/s)'
        f.write(f'Generate valid with beam=1: exact = {exact}\n')
    logging.getLogger('fairseq_cli.generate').info(line)


if __name__ == '__main__':
    main()
