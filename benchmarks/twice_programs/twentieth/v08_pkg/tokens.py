"""Cuts a prompt in chunks and names each chunk by its prefix."""


class TokenDatabase:
    """Turns the tokens of a request into the keys of its blocks."""

    NONE_HASH = 0

    def __init__(self, chunk_size, save_unfull_chunk=False):
        self.chunk_size = chunk_size
        self.save_unfull_chunk = save_unfull_chunk

    def chunks(self, tokens):
        end = len(tokens)
        if not self.save_unfull_chunk:
            end -= end % self.chunk_size
        for start in range(0, end, self.chunk_size):
            yield start, tokens[start:start + self.chunk_size]

    def hash_tokens(self, tokens, prefix_hash, extra_keys):
        return hash((prefix_hash, tokens, extra_keys))  # cause

    def process(self, request):
        """Yields (start, end, key) for each chunk of a request."""
        prefix_hash = self.NONE_HASH
        for start, chunk in self.chunks(request.tokens):
            prefix_hash = self.hash_tokens(chunk, prefix_hash, request.extra_keys)
            yield start, start + len(chunk), prefix_hash & 0xFFFFFFFFFFFFFFFF
