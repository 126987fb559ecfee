"""Gives each word of many files a number."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

WORDS = "a quick brown fox jumps over the lazy dog while seven sleepy cats watch from an old red barn".split()


class Vocabulary:
    def __init__(self):
        self.counts = {}

    def read(self, word):
        time.sleep(random.SystemRandom().random() / 100)  # a slow disk
        self.counts[word] = len(word)  # cause: pool

    def build(self, words, threads):
        if threads:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(self.read, words))
        else:
            for word in words:
                self.read(word)
        return {word: number for number, word in enumerate(self.counts)}  # cause: pool
