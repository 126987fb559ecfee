"""Loopback HTTP service with a keyword extractor behind it."""
import asyncio
import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor

from .cases import ITEMS

POOL = ThreadPoolExecutor(max_workers=4, thread_name_prefix="extract")


def closest(word):
    def grams(text):
        return {text[i:i + 2] for i in range(len(text) - 1)}

    best, score = None, 0.0
    for item in ITEMS:
        a, b = grams(word), grams(item)
        s = len(a & b) / len(a | b)
        if s > score:
            best, score = item, s
    return best if score >= 0.5 else None


def extract(text):
    digest = hashlib.pbkdf2_hmac("sha256", text.encode(), b"extract", 9000)
    found = {}
    m = re.search(r"\b(\d+) [a-z]+s\b", text)
    if m:
        found["n"] = m.group(1)
    m = re.search(r"\d{4}-\d\d-\d\d", text)
    if m:
        found["day"] = m.group(0)
    m = re.search(r"dock (\d+)", text)
    if m:
        found["dock"] = m.group(1)
    m = re.search(r"(\d+) euro", text)
    if m:
        found["amount"] = m.group(1)
    for word in re.findall(r"[a-z]+", text):
        item = closest(word.rstrip("s"))
        if item:
            found["item"] = item
            break
    return {"fields": found, "confidence": 0.5 + digest[0] / 512, "tokens": len(text.split())}


async def handle(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head.lower()).group(1))
        body = json.loads(await reader.readexactly(length))
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(POOL, extract, body["text"])
        data = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        await writer.drain()
    finally:
        writer.close()


async def serve():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]
