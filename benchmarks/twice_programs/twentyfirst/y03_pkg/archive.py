"""Synthetic ticket texts with a queue label."""
import random
from dataclasses import dataclass, field

QUEUES = {
    "billing": "invoice refund charge card payment receipt tax subscription renewal price discount voucher",
    "login": "password reset account locked email token twofactor signin session expired browser cookie",
    "shipping": "parcel courier delivery delayed address tracking warehouse lost damaged return label pickup",
    "hardware": "screen battery charger keyboard overheating fan noise firmware cable adapter broken replacement",
    "network": "router wifi latency packet vpn dns timeout firewall proxy signal outage bandwidth",
    "app": "crash update install version android ios permission notification sync freeze button export",
}
FILLER = ("please help with my since yesterday again after the last it does not work i tried to "
          "several times and still nothing thanks could you check why this keeps happening today").split()


@dataclass
class Ticket:
    number: str
    queue: str
    words: list = field(default_factory=list)


def _make(rng, number, queue):
    own = QUEUES[queue].split()
    other = QUEUES[rng.choice(sorted(QUEUES))].split()
    words = []
    for _ in range(rng.randint(25, 60)):
        u = rng.random()
        if u < 0.42:
            words.append(rng.choice(own))
        elif u < 0.52:
            words.append(rng.choice(other))
        else:
            words.append(rng.choice(FILLER))
    return Ticket(number, queue, words)


def load_archive(n, seed):
    rng = random.Random(seed)
    queues = sorted(QUEUES)
    return [_make(rng, f"A{i:05d}", rng.choice(queues)) for i in range(n)]


def load_incoming(n, seed):
    rng = random.Random(seed)
    queues = sorted(QUEUES)
    return [_make(rng, f"N{i:04d}", queues[i % len(queues)]) for i in range(n)]
