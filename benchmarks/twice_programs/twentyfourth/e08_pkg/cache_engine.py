"""Key and value blocks of the cache, and the table of blocks per request."""
import torch


class CacheEngine:
    """Holds the blocks of all layers; hands out blocks to requests."""

    def __init__(self, n_layers, n_blocks, block_size, n_heads, head_dim):
        self.n_layers = n_layers
        self.n_blocks = n_blocks
        self.block_size = block_size
        self.n_heads = n_heads
        self.head_dim = head_dim
        self.key_cache = self._allocate()
        self.value_cache = self._allocate()
        self.free = list(range(n_blocks))
        self.tables = {}

    def _allocate(self):
        shape = (self.n_blocks, self.block_size, self.n_heads, self.head_dim)
        blocks = []
        for _ in range(self.n_layers):
            blocks.append(torch.empty(shape, dtype=torch.float32))  # cause
        return blocks

    def reserve(self, request_id, n_tokens):
        needed = -(-n_tokens // self.block_size)
        table = [self.free.pop(0) for _ in range(needed)]
        self.tables[request_id] = table
        return table

    def release(self, request_id):
        self.free.extend(self.tables.pop(request_id))

    def write(self, request_id, layer, position, key, value):
        block = self.tables[request_id][position // self.block_size]
        slot = position % self.block_size
        self.key_cache[layer][block, slot] = key
        self.value_cache[layer][block, slot] = value

    def gather(self, request_id, layer):
        """All slots of the blocks of the request, as whole blocks."""
        index = torch.tensor(self.tables[request_id])
        keys = self.key_cache[layer][index].reshape(-1, self.n_heads, self.head_dim)
        values = self.value_cache[layer][index].reshape(-1, self.n_heads, self.head_dim)
        return keys, values
