"""Tag the sentences of sentences.txt."""
import json
import pathlib

import torch
from transformers import BertForTokenClassification
from transformers.utils import logging

from corpus import Vocabulary, sentences

LABELS = ["O", "B-PER", "B-LOC", "B-ORG", "B-MISC"]
ENCODER = pathlib.Path("encoder")


class NERModel:
    def __init__(self, folder, labels):
        self.labels = labels
        self.vocabulary = Vocabulary.load(folder / "vocabulary.json")
        self.model = BertForTokenClassification.from_pretrained(folder, num_labels=len(labels))  # cause
        self.model.eval()

    def predict(self, lines):
        encoded = [self.vocabulary.encode(line) for line in lines]
        ids = torch.tensor([e[0] for e in encoded])
        attention = torch.tensor([e[1] for e in encoded])
        with torch.no_grad():
            logits = self.model(input_ids=ids, attention_mask=attention).logits
        scores, best = logits.softmax(-1).max(-1)
        out = []
        for row, line in enumerate(lines):
            words = line.split()
            tags = [self.labels[k] for k in best[row, 1 : len(words) + 1].tolist()]
            confidence = [round(s, 5) for s in scores[row, 1 : len(words) + 1].tolist()]
            out.append([list(item) for item in zip(words, tags, confidence)])
        return out


def main():
    logging.disable_progress_bar()
    path = pathlib.Path("sentences.txt")
    path.write_text("\n".join(sentences(25, seed=2)) + "\n")
    lines = path.read_text().splitlines()
    tagger = NERModel(ENCODER, LABELS)
    tagged = tagger.predict(lines)
    pathlib.Path("tags.json").write_text(json.dumps(tagged, indent=1))
    counts = dict.fromkeys(LABELS, 0)
    for row in tagged:
        for _, tag, _ in row:
            counts[tag] += 1
    print("tags:", counts)
    for row in tagged[:4]:
        print("  " + " ".join(f"{word}/{tag}" for word, tag, _ in row))


if __name__ == "__main__":
    main()
