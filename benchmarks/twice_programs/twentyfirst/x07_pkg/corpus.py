"""A synthetic corpus with spelling variation."""
import random

ROOTS = ["rainfall", "drought", "conflict", "migration", "foodprice", "harvest",
         "livestock", "malnutrition", "flooding", "education", "investment",
         "epidemic", "deforestation", "trade", "inflation", "displacement",
         "fertilizer", "irrigation", "governance", "unemployment"]
ADJ = ["severe", "seasonal", "regional", "rising", "chronic", "reported",
       "lower", "sudden"]
VERBS = ["leads to", "causes", "results in", "contributes to"]
FILLER = ("the ministry noted that data were collected in several districts "
          "during the period under review and further work is required").split()


def _vary(word, rng):
    """Misspellings and inflections as they occur after OCR."""
    letters = list(word)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        kind = rng.random()
        pos = rng.randrange(1, len(letters))
        if kind < 0.4:
            letters[pos] = rng.choice("aeiourstln")
        elif kind < 0.7:
            letters.insert(pos, letters[pos])
        elif len(letters) > 5:
            del letters[pos]
    return "".join(letters)


def _mention(rng):
    word = _vary(rng.choice(ROOTS), rng)
    return f"{rng.choice(ADJ)} {word}" if rng.random() < 0.5 else word


def write_corpus(folder, n_docs, seed):
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    paths = []
    for k in range(n_docs):
        sentences = []
        for _ in range(rng.randint(4, 14)):
            if rng.random() < 0.65:
                sentences.append(f"{_mention(rng)} {rng.choice(VERBS)} {_mention(rng)}")
            else:
                sentences.append(" ".join(rng.sample(FILLER, 8)))
        path = folder / f"doc{k:04d}.txt"
        path.write_text(". ".join(sentences) + ".\n")
        paths.append(path)
    return paths
