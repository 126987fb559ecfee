"""From text to mentions and relations."""
import re

VERBS = re.compile(r"^(.*?) (leads to|causes|results in|contributes to) (.*)$")
MODIFIERS = {"severe", "seasonal", "regional", "rising", "chronic", "reported",
             "lower", "sudden"}


def head(phrase):
    words = [w for w in phrase.split() if w not in MODIFIERS]
    return words[-1] if words else phrase


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1,
                                       prev + (ca != cb))
    return row[-1]


def annotate(text):
    """Relations of one document, near-duplicate sentences dropped."""
    sentences = [s.strip() for s in text.replace("\n", " ").split(". ")]
    kept = []
    for s in sentences:
        if all(edit_distance(s, t) > 6 for t in kept):
            kept.append(s)
    found = []
    for s in kept:
        m = VERBS.match(s.rstrip("."))
        if m:
            found.append((head(m.group(1)), head(m.group(3))))
    return found
