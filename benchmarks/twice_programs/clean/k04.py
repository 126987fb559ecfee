"""Object detection toy training with iteration-based logging.

Modelled on facebookresearch/detectron2 tools/plain_train_net.py and its
utils/events.py (EventStorage, CommonMetricPrinter, JSONWriter -> metrics.json with
time / data_time / eta_seconds) and utils/logger.py ("[11/02 10:00:00 d2.engine.train_loop]: ...").
A small grid detector learns one box per image.
"""
import datetime
import json
import logging
import os
import platform
import statistics
import sys
import time
from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

OUTPUT_DIR, MAX_ITER, BATCH, BASE_LR, WARMUP, PERIOD, CKPT = './output', 240, 16, 0.02, 40, 20, 80
CLASSES = ['thing', 'stuff', 'person']


def setup_logger(output):
    logger = logging.getLogger('d2')
    logger.setLevel(logging.DEBUG)
    fmt = logging.Formatter('[%(asctime)s %(name)s]: %(message)s', datefmt='%m/%d %H:%M:%S')
    for h in (logging.StreamHandler(sys.stdout), logging.FileHandler(os.path.join(output, 'log.txt'))):
        h.setFormatter(fmt)
        logger.addHandler(h)
    return logger


class EventStorage:
    def __init__(self):
        self.iter, self.history = 0, defaultdict(list)

    def put_scalar(self, name, value):
        self.history[name].append((float(value), self.iter))

    def median(self, name, window=20):
        return statistics.median(v for v, _ in self.history[name][-window:])

    def latest(self):
        return {k: (v[-1][0] if k in ('lr', 'eta_seconds') else self.median(k)) for k, v in self.history.items()}


class CommonMetricPrinter:
    def __init__(self, max_iter):
        self.max_iter, self.logger = max_iter, logging.getLogger('d2.utils.events')

    def write(self, st):
        eta_seconds = st.median('time', 1000) * (self.max_iter - st.iter - 1)
        st.put_scalar('eta_seconds', eta_seconds)
        times = [v for v, _ in st.history['time']]
        losses = '  '.join('{}: {:.4g}'.format(k, st.median(k)) for k in st.history if 'loss' in k)
        self.logger.info(' eta: {}  iter: {}  {}  time: {:.4f}  last_time: {:.4f}  data_time: {:.4f}  last_data_time: {:.4f}  lr: {:.5g}  '.format(
            str(datetime.timedelta(seconds=int(eta_seconds))), st.iter, losses, sum(times) / len(times), times[-1],
            st.median('data_time'), st.history['data_time'][-1][0], st.history['lr'][-1][0]))


class JSONWriter:
    def __init__(self, path):
        self.f = open(path, 'a')

    def write(self, st):
        self.f.write(json.dumps({'iteration': st.iter, **st.latest()}, sort_keys=True) + '\n')
        self.f.flush()


def sample(rng, n):
    imgs = rng.normal(0, 0.3, (n, 3, 32, 32))
    boxes, labels = np.zeros((n, 4)), rng.integers(0, 3, n)
    for i in range(n):
        w, h = rng.integers(6, 16, 2)
        x, y = rng.integers(0, 32 - w), rng.integers(0, 32 - h)
        imgs[i, labels[i], y:y + h, x:x + w] += 1.5
        boxes[i] = [x, y, x + w, y + h]
    return torch.tensor(imgs, dtype=torch.float32), torch.tensor(boxes / 32, dtype=torch.float32), torch.tensor(labels)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(),
                                      nn.Linear(32 * 64, 64), nn.ReLU())
        self.cls, self.box = nn.Linear(64, 3), nn.Linear(64, 4)

    def forward(self, x, boxes=None, labels=None):
        f = self.backbone(x)
        c, b = self.cls(f), self.box(f).sigmoid()
        if boxes is None:
            return c, b
        return {'loss_cls': F.cross_entropy(c, labels), 'loss_box_reg': F.smooth_l1_loss(b, boxes, beta=0.1) * 4}


def iou(a, b):
    lt, rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=0).prod(1)
    return inter / (area(a) + area(b) - inter + 1e-9)


def evaluate(model, logger):
    model.eval()
    rng, t0 = np.random.default_rng(99), time.perf_counter()
    ious, results = [], []
    for i in range(10):
        x, b, l = sample(rng, 32)
        with torch.no_grad():
            c, p = model(x)
        hit = (c.argmax(1) == l)
        v = iou(p, b) * hit
        ious.append(v)
        for j in range(32):
            results.append({'image_id': i * 32 + j, 'category_id': int(c[j].argmax()), 'bbox': (p[j] * 32).tolist(),
                            'score': float(c[j].softmax(0).max())})
        if i % 5 == 4:
            per = (time.perf_counter() - t0) / (i + 1)
            logger.getChild('evaluation.evaluator').info(f'Inference done {i + 1}/10. Inference: {per:.4f} s/iter. ETA={datetime.timedelta(seconds=int(per * (9 - i)))}')
    os.makedirs(f'{OUTPUT_DIR}/inference', exist_ok=True)
    json.dump(results, open(f'{OUTPUT_DIR}/inference/coco_instances_results.json', 'w'))
    v = torch.cat(ious)
    model.train()
    return {'AP': float(np.mean([(v > t).float().mean() for t in np.arange(0.5, 1, 0.05)])) * 100,
            'AP50': float((v > .5).float().mean()) * 100, 'AP75': float((v > .75).float().mean()) * 100}


def main():
    os.makedirs(OUTPUT_DIR, exist_ok=True)
    logger = setup_logger(OUTPUT_DIR)
    logger.info('Rank of current process: 0. World size: 1')
    logger.info(f'Environment info: python {platform.python_version()}, torch {torch.__version__}, host {platform.node()}, pid {os.getpid()}')
    torch.manual_seed(7)
    rng = np.random.default_rng(7)
    model = Detector()
    opt = torch.optim.SGD(model.parameters(), BASE_LR, momentum=0.9, weight_decay=1e-4)
    storage, writers = EventStorage(), [CommonMetricPrinter(MAX_ITER), JSONWriter(f'{OUTPUT_DIR}/metrics.json')]
    tl = logger.getChild('engine.train_loop')
    tl.info('Starting training from iteration 0')
    start = time.perf_counter()
    for it in range(MAX_ITER):
        storage.iter = it
        t0 = time.perf_counter()
        x, b, l = sample(rng, BATCH)
        data_time = time.perf_counter() - t0
        losses = model(x, b, l)
        total = sum(losses.values())
        opt.zero_grad()
        total.backward()
        opt.step()
        storage.put_scalar('total_loss', total.item())
        for k, v in losses.items():
            storage.put_scalar(k, v.item())
        storage.put_scalar('data_time', data_time)
        storage.put_scalar('lr', opt.param_groups[0]['lr'])
        storage.put_scalar('time', time.perf_counter() - t0)
        for g in opt.param_groups:
            g['lr'] = BASE_LR * min(1.0, (it + 2) / WARMUP) * (0.1 if it >= 200 else 1)
        if (it + 1) % PERIOD == 0 or it == MAX_ITER - 1:
            for w in writers:
                w.write(storage)
        if (it + 1) % CKPT == 0:
            logger.getChild('checkpoint').info(f'Saving checkpoint to {OUTPUT_DIR}/model_{it:07d}.pth')
            torch.save({'model': model.state_dict(), 'optimizer': opt.state_dict(), 'iteration': it}, f'{OUTPUT_DIR}/model_{it:07d}.pth')
    total_time = time.perf_counter() - start
    hl = logger.getChild('engine.hooks')
    hl.info('Overall training speed: {} iterations in {} ({:.4f} s / it)'.format(MAX_ITER, str(datetime.timedelta(seconds=int(total_time))), total_time / MAX_ITER))
    res = evaluate(model, logger)
    open(f'{OUTPUT_DIR}/last_checkpoint', 'w').write(f'model_{MAX_ITER - 1:07d}.pth')
    lg = logger.getChild('evaluation.testing')
    lg.info('copypaste: Task: bbox')
    lg.info('copypaste: ' + ','.join(res))
    lg.info('copypaste: ' + ','.join('{:.4f}'.format(v) for v in res.values()))


if __name__ == '__main__':
    main()
