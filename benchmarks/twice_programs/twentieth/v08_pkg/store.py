"""A store of blocks spread over shards, each with its own LRU list."""
from collections import OrderedDict


class Shard:
    def __init__(self, index, capacity):
        self.index = index
        self.capacity = capacity
        self.blocks = OrderedDict()
        self.lookups = 0
        self.hits = 0
        self.evictions = 0

    def get(self, key):
        self.lookups += 1
        if key in self.blocks:
            self.blocks.move_to_end(key)
            self.hits += 1
            return self.blocks[key]
        return None

    def put(self, key, value):
        if key in self.blocks:
            self.blocks.move_to_end(key)
            return
        while len(self.blocks) >= self.capacity:
            self.blocks.popitem(last=False)
            self.evictions += 1
        self.blocks[key] = value


class ShardedStore:
    def __init__(self, n_shards, capacity):
        self.shards = [Shard(i, capacity) for i in range(n_shards)]

    def shard_of(self, key):
        return self.shards[key % len(self.shards)]

    def get(self, key):
        return self.shard_of(key).get(key)

    def put(self, key, value):
        self.shard_of(key).put(key, value)

    @property
    def evictions(self):
        return sum(s.evictions for s in self.shards)
