"""A rule-based judge of generations."""


class UltraJudge:
    weights = {"relevance": 0.4, "variety": 0.35, "length": 0.25}

    @staticmethod
    def relevance(prompt, words):
        letters = set(prompt.lower())
        hits = sum(1 for w in words if set(w) <= letters)
        return hits / max(len(words), 1)

    def rate(self, prompt, text):
        words = text.split()
        parts = {
            "relevance": self.relevance(prompt, words),
            "variety": len(set(words)) / max(len(words), 1),
            "length": min(len(words) / 50.0, 1.0),
        }
        return 5.0 * sum(self.weights[k] * v for k, v in parts.items())
