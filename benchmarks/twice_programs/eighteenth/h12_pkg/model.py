"""A stand-in for a language model: answers by rules, wrong in a reproducible way on hard inputs."""
import hashlib
import math
import re
from collections import Counter


class NgramModel:
    name = "mock/ngram-1"

    def __init__(self, order=4):
        self.order = order
        self.counts = [Counter() for _ in range(order)]

    def fit(self, texts):
        for text in texts:
            padded = "^" * (self.order - 1) + text
            for i in range(self.order - 1, len(padded)):
                for k in range(self.order):
                    self.counts[k][padded[i - k:i + 1]] += 1

    def perplexity(self, text):
        padded = "^" * (self.order - 1) + text
        total = 0.0
        for i in range(self.order - 1, len(padded)):
            p = 1e-3
            for k in range(1, self.order):
                context = self.counts[k - 1][padded[i - k:i]]
                if context:
                    p = 0.3 * p + 0.7 * self.counts[k][padded[i - k:i + 1]] / context
            total -= math.log(max(p, 1e-6))
        return math.exp(total / len(text))

    def _skill(self, prompt, question):
        digest = hashlib.sha256((prompt + question).encode()).digest()
        return digest[0] / 255

    def generate(self, prompt, question, level):
        luck = self._skill(prompt, question)
        answer = self._solve(question)
        if luck < 0.12 + 0.15 * level:
            return answer[::-1] + "?" if len(answer) > 1 else "unknown"
        return answer

    def _solve(self, question):
        m = re.search(r"What is (\d+) \+ (\d+)", question)
        if m:
            return str(int(m[1]) + int(m[2]))
        m = re.search(r"first: (.*)\?", question)
        if m:
            return min(m[1].split(", "))
        m = re.search(r"letter (\d+) of '(\w+)'", question)
        return m[2][int(m[1]) - 1]
