import selectors
import socket

import torch

from .wire import receive, send


class ParameterServer:
    """Adam on one machine; sites connect over TCP and send gradients."""

    def __init__(self, model, sites, lr):
        self.model, self.sites = model, sites
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.log = []

    def accept(self):
        found = {}
        while len(found) < self.sites:
            sock, _ = self.listener.accept()
            found[receive(sock)["site"]] = sock
        self.socks = [found[s] for s in sorted(found)]

    def apply(self, update):
        for p, g in zip(self.model.parameters(), update["grads"]):
            p.grad = g
        self.opt.step()

    def weights(self):
        return {k: v.clone() for k, v in self.model.state_dict().items()}

    def round(self, number):
        for sock in self.socks:
            send(sock, round=number, weights=self.weights())
        losses = {}
        with selectors.DefaultSelector() as sel:
            for sock in self.socks:
                sel.register(sock, selectors.EVENT_READ)
            while len(losses) < self.sites:
                for key, _ in sel.select():  # cause
                    update = receive(key.fileobj)
                    sel.unregister(key.fileobj)
                    self.apply(update)
                    losses[update["site"]] = update["loss"]
        self.log.append(sum(losses[s] for s in sorted(losses)) / self.sites)

    def close(self):
        for sock in self.socks:
            send(sock, round=-1, weights={})
            sock.close()
        self.listener.close()
