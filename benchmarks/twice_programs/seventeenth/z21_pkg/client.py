"""Minimal HTTP client for the extraction service."""
import asyncio
import json


class Client:
    def __init__(self, host, port, retries=3):
        self.host, self.port, self.retries = host, port, retries

    async def extract(self, text):
        for attempt in range(self.retries):
            try:
                return await asyncio.wait_for(self._post({"text": text}), timeout=20)
            except (ConnectionError, asyncio.IncompleteReadError):
                if attempt + 1 == self.retries:
                    raise
                await asyncio.sleep(0.05 * (attempt + 1))

    async def _post(self, payload):
        reader, writer = await asyncio.open_connection(self.host, self.port)
        body = json.dumps(payload).encode()
        writer.write(b"POST /extract HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                     % len(body) + body)
        await writer.drain()
        raw = await reader.read()
        writer.close()
        head, data = raw.split(b"\r\n\r\n", 1)
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise ConnectionError(head.decode(errors="replace"))
        return json.loads(data)
