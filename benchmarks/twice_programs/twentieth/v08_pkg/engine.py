"""One serving process that loads and saves blocks through the store."""
from dataclasses import dataclass, field

from .tokens import TokenDatabase

PREFILL_SECONDS_PER_TOKEN = 2.1e-4
LOAD_SECONDS_PER_CHUNK = 4.0e-4


@dataclass
class ReplayResult:
    engine: str
    chunks: int = 0
    hits: int = 0
    computed: int = 0
    seconds: float = 0.0
    seconds_without_store: float = 0.0
    per_turn_hits: dict = field(default_factory=dict)

    @property
    def hit_rate(self):
        return self.hits / max(1, self.chunks)


class Engine:
    def __init__(self, name, store, chunk_size):
        self.name = name
        self.store = store
        self.database = TokenDatabase(chunk_size)

    def replay(self, requests):
        result = ReplayResult(self.name)
        for request in requests:
            self._serve(request, result)
        return result

    def _serve(self, request, result):
        keys = list(self.database.process(request))
        loaded = 0
        for _, _, key in keys:
            if self.store.get(key) is None:
                break
            loaded += 1
        for start, end, key in keys[loaded:]:
            self.store.put(key, (request.user, start, end))
        result.chunks += len(keys)
        result.hits += loaded
        result.computed += len(keys) - loaded
        turn = result.per_turn_hits.setdefault(request.turn, [0, 0])
        turn[0] += loaded
        turn[1] += len(keys)
        chunk = self.database.chunk_size
        fresh = len(request.tokens) - loaded * chunk
        result.seconds += fresh * PREFILL_SECONDS_PER_TOKEN + loaded * LOAD_SECONDS_PER_CHUNK
        result.seconds_without_store += len(request.tokens) * PREFILL_SECONDS_PER_TOKEN
