"""Collection and output of messages."""
import json
from collections import Counter


class Report:
    def __init__(self):
        self.messages = []
        self.totals = {}

    def extend(self, period, messages, totals):
        for name, index, text in messages:
            self.messages.append({"period": period, "rule": name, "fact": index, "text": text})
        self.totals[period] = {k: repr(v) for k, v in totals.items()}

    def counts(self):
        return dict(sorted(Counter(m["rule"] for m in self.messages).items()))

    def write(self, folder):
        with open(folder / "messages.jsonl", "w") as fh:
            for message in self.messages:
                fh.write(json.dumps(message) + "\n")
        (folder / "totals.json").write_text(json.dumps(self.totals, indent=1))
