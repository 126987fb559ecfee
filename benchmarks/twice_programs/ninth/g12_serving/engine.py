"""A small inference engine: requests from a queue are grouped into batches and scored."""
import queue
import threading
import time

import torch


def quantise_dynamic(x, bits=8):
    """Symmetric activation quantisation as done by int8 kernels."""
    top = 2 ** (bits - 1) - 1
    scale = x.abs().max().clamp_min(1e-8) / top
    return torch.clamp(torch.round(x / scale), -top, top) * scale


class QuantisedEncoder(torch.nn.Module):
    def __init__(self, vocab, dim, hidden):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, dim)
        self.fc1 = torch.nn.Linear(dim, hidden)
        self.fc2 = torch.nn.Linear(hidden, dim)

    @torch.inference_mode()
    def forward(self, ids, mask):
        h = (self.embed(ids) * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        h = torch.relu(self.fc1(quantise_dynamic(h)))
        h = self.fc2(quantise_dynamic(h))
        return torch.nn.functional.normalize(h, dim=1)


class Engine:
    """Collects up to max_batch requests, waiting at most max_wait seconds for a batch to fill."""

    def __init__(self, model, max_batch=16, max_wait=0.004):
        self.model, self.max_batch, self.max_wait = model, max_batch, max_wait
        self.inbox, self.results, self.batches = queue.Queue(), {}, []
        self.thread = threading.Thread(target=self._loop, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def submit(self, rid, tokens):
        self.inbox.put((rid, tokens))

    def close(self):
        self.inbox.put(None)
        self.thread.join()

    def _gather(self):
        batch = [self.inbox.get()]
        deadline = time.monotonic() + self.max_wait
        while batch[-1] is not None and len(batch) < self.max_batch:
            try:
                batch.append(self.inbox.get(timeout=max(0.0, deadline - time.monotonic())))  # cause
            except queue.Empty:
                break
        return batch

    def _loop(self):
        running = True
        while running:
            batch = self._gather()
            if batch[-1] is None:
                running = False
                batch.pop()
            if not batch:
                continue
            width = max(len(t) for _, t in batch)
            ids = torch.zeros(len(batch), width, dtype=torch.long)
            mask = torch.zeros(len(batch), width)
            for row, (_, toks) in enumerate(batch):
                ids[row, :len(toks)] = torch.as_tensor(toks)
                mask[row, :len(toks)] = 1.0
            for (rid, _), vec in zip(batch, self.model(ids, mask)):
                self.results[rid] = vec
            self.batches.append(len(batch))
