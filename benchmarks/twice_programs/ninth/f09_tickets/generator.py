"""Synthetic tickets of a help desk."""
import random
import uuid

QUEUES = {
    "billing": "invoice refund charge card payment tax receipt amount due plan".split(),
    "network": "vpn wifi latency router cable dns packet proxy outage slow".split(),
    "account": "login password reset email locked profile two factor name delete".split(),
    "hardware": "screen battery keyboard fan disk boot charger dock noise heat".split(),
    "other": "hello question feedback thanks contact office hours manual where how".split(),
}
COMMON = "the a my is not please since today it again help when after still with".split()


class TicketGenerator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.day = 0

    def text(self, queue):
        words = []
        for _ in range(self.rng.randint(6, 22)):
            roll = self.rng.random()
            if roll < 0.55:
                words.append(self.rng.choice(COMMON))
            elif roll < 0.8:
                words.append(self.rng.choice(QUEUES[queue]))
            else:
                words.append(self.rng.choice(QUEUES[self.rng.choice(list(QUEUES))]))
        return " ".join(words)

    def ticket(self):
        queue = self.rng.choices(list(QUEUES), weights=[5, 4, 4, 3, 2])[0]
        label = queue if self.rng.random() > 0.06 else self.rng.choice(list(QUEUES))
        self.day += self.rng.random() < 0.02
        return {
            "ticket_id": str(uuid.uuid4()),  # cause
            "day": self.day,
            "text": self.text(queue),
            "queue": label,
            "priority": self.rng.randint(1, 4),
        }

    def stream(self, n):
        for _ in range(n):
            yield self.ticket()
