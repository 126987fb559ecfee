"""Event timeline of a storyboard service on SQLite.

Replays a day of edits of several story sequences against the service: every
edit is stored as an event with a sortable identifier, the newest event of a
shot decides its state.  Writes the timelines and the final state of all shots.

Modelled on: https://github.com/openstory-so/openstory/pull/1013
"""
import json
import logging
import random
import secrets
import sqlite3
import zlib

logger = logging.getLogger("timeline")

SEED = 1013
N_SEQUENCES = 12
N_BURSTS = 400
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
KINDS = ["created", "prompt", "render", "approve", "reject", "trim", "caption"]

SCHEMA = """
CREATE TABLE event (id TEXT PRIMARY KEY, sequence INTEGER, shot INTEGER,
                    kind TEXT, detail INTEGER);
CREATE INDEX event_sequence ON event (sequence, id);
"""


class Clock:
    """Milliseconds of the replayed day."""

    def __init__(self, start=1_751_328_000_000):
        self.now = start

    def advance(self, ms):
        self.now += ms


def encode(value, length):
    """Crockford base 32, most significant digit first."""
    digits = []
    for _ in range(length):
        value, rest = divmod(value, 32)
        digits.append(ALPHABET[rest])
    return "".join(reversed(digits))


def generate_id(clock):
    """Sortable identifier: time in front, then eighty random bits."""
    return encode(clock.now, 10) + encode(secrets.randbits(80), 16)  # cause


class EventStore:
    def __init__(self, path, clock):
        self.clock = clock
        self.conn = sqlite3.connect(path)
        self.conn.executescript(SCHEMA)

    def record(self, sequence, shot, kind, detail):
        row = (generate_id(self.clock), sequence, shot, kind, detail)
        self.conn.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row)

    def list_by_sequence(self, sequence):
        """Events of a sequence, newest first."""
        query = "SELECT shot, kind, detail FROM event WHERE sequence = ? ORDER BY id DESC"
        return self.conn.execute(query, (sequence,)).fetchall()

    def close(self):
        self.conn.commit()
        self.conn.close()


class Replay:
    """Writes bursts of events as the editors of the service do."""

    def __init__(self, store, clock, seed):
        self.store = store
        self.clock = clock
        self.rnd = random.Random(seed)
        self.shots = {number: 3 for number in range(N_SEQUENCES)}

    def burst(self):
        """A few edits that follow each other without a pause."""
        sequence = self.rnd.randrange(N_SEQUENCES)
        if self.rnd.random() < 0.1:
            self.shots[sequence] += 1
        shot = self.rnd.randrange(self.shots[sequence])
        for _ in range(self.rnd.randint(1, 5)):
            kind = self.rnd.choice(KINDS)
            self.store.record(sequence, shot, kind, self.rnd.randrange(1000))
            if self.rnd.random() < 0.3:
                self.clock.advance(1)

    def run(self, n):
        for _ in range(n):
            self.burst()
            self.clock.advance(self.rnd.randint(5, 90_000))
        logger.info("replayed %d bursts", n)


def shot_states(events):
    """State of every shot from its newest events."""
    states = {}
    for shot, kind, detail in reversed(events):
        state = states.setdefault(shot, {"status": "draft", "prompt": None, "length": 100, "version": 0})
        if kind == "prompt":
            state["prompt"] = detail
            state["status"] = "draft"
        elif kind == "render":
            state["version"] += 1
            state["status"] = "rendered"
        elif kind == "approve" and state["status"] == "rendered":
            state["status"] = "approved"
        elif kind == "reject":
            state["status"] = "rejected"
        elif kind == "trim":
            state["length"] = max(10, state["length"] * (1000 - detail) // 1000 + detail // 20)
        elif kind == "created":
            state["version"] = max(1, state["version"])
    return dict(sorted(states.items()))


def fingerprint(events):
    return zlib.crc32(json.dumps(events).encode())


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    clock = Clock()
    store = EventStore(":memory:", clock)
    Replay(store, clock, SEED).run(N_BURSTS * N_SEQUENCES)
    summary = {}
    with open("timeline.txt", "w") as handle:
        for sequence in range(N_SEQUENCES):
            events = store.list_by_sequence(sequence)
            for shot, kind, detail in events:
                handle.write("%d %d %s %d\n" % (sequence, shot, kind, detail))
            states = shot_states(events)
            summary[sequence] = states
            approved = sum(s["status"] == "approved" for s in states.values())
            length = sum(s["length"] for s in states.values())
            print("sequence %2d: %4d events, %2d shots, %2d approved, length %d, timeline %08x"
                  % (sequence, len(events), len(states), approved, length, fingerprint(events)))
    store.close()
    with open("states.json", "w") as handle:
        json.dump(summary, handle, indent=1)


if __name__ == "__main__":
    main()
