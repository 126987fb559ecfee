"""Readme generator for a source tree.

Walks a repository, summarises every source file with a small extractive
"model" (term weights plus a few structural facts), merges the summaries into
a prompt of bounded length and renders README.md and summaries.json from it.

The repository used here is a synthetic one that is generated on start, so that
the tool can be tried without a checkout.

Modelled on: https://github.com/agsaru/Repo2Readme/issues/155
"""
import json
import logging
import math
import random
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

log = logging.getLogger("readme")

VERBS = ["load", "parse", "merge", "render", "fetch", "score", "split", "clean", "index", "commit"]
NOUNS = ["invoice", "ledger", "session", "tenant", "report", "voucher", "account", "payment", "mandate", "batch"]
PACKAGES = ["core", "api", "storage", "jobs"]
MAX_PROMPT_CHARS = 2600
MAX_WORKERS = 4


def make_repository(root, n_files=36, seed=11):
    """Write a synthetic repository below root and return its path."""
    rng = random.Random(seed)
    for i in range(n_files):
        package = PACKAGES[i % len(PACKAGES)]
        noun = NOUNS[i % len(NOUNS)]
        folder = root / package
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f'"""Helpers for {noun} handling in {package}."""', "import json", ""]
        for j in range(26):
            verb, other = rng.choice(VERBS), rng.choice(NOUNS)
            lines.append(f"def {verb}_{noun}_{other}_{j}(items, limit={rng.randint(1, 90)}):")
            lines.append(f'    """{verb.title()} every {other} of a {noun}."""')
            lines.append(f"    return [{verb}(item) for item in items if item.{other} < limit]")
            lines.append("")
        (folder / f"{noun}_{i:02d}.py").write_text("\n".join(lines))
    return root


class Document:
    def __init__(self, path, root):
        self.path = path
        self.name = str(path.relative_to(root))
        self.text = path.read_text()


def load_documents(root):
    """Read all source files of the repository in path order."""
    return [Document(p, root) for p in sorted(root.rglob("*.py"))]


class ExtractiveModel:
    """Stand-in for the language model: ranks terms by tf-idf and smooths them."""

    def __init__(self, documents, rounds=260):
        self.rounds = rounds
        self.df = Counter()
        for doc in documents:
            self.df.update(set(self.tokenize(doc.text)))
        self.n = len(documents)

    @staticmethod
    def tokenize(text):
        return [t for t in re.split(r"[^a-z]+", text.lower()) if len(t) > 2]

    def term_weights(self, text):
        tokens = self.tokenize(text)
        tf = Counter(tokens)
        weights = {t: c * math.log((1 + self.n) / (1 + self.df[t])) for t, c in tf.items()}
        for _ in range(self.rounds):
            norm = math.sqrt(sum(w * w for w in weights.values())) or 1.0
            smoothed = {}
            for left, right in zip(tokens, tokens[1:]):
                smoothed[left] = smoothed.get(left, 0.0) + 0.1 * weights[right] / norm
            weights = {t: 0.9 * w / norm + smoothed.get(t, 0.0) for t, w in weights.items()}
        return weights

    def summarize(self, doc):
        weights = self.term_weights(doc.text)
        top = sorted(weights, key=lambda t: (-weights[t], t))[:4]
        functions = re.findall(r"^def (\w+)", doc.text, flags=re.M)
        return {
            "file": doc.name,
            "functions": len(functions),
            "keywords": top,
            "text": f"{doc.name}: {len(functions)} functions, mostly about {', '.join(top)}; e.g. {functions[0]}.",
        }


def generate_all_summaries(documents, model, max_workers=MAX_WORKERS):
    """Summarise the documents concurrently."""
    summaries = []
    failed = []
    lock = threading.Lock()

    def process_document(doc):
        started = time.perf_counter()
        try:
            summary = model.summarize(doc)
        except ValueError as exc:
            with lock:
                failed.append((doc.name, str(exc)))
            return
        log.debug("%s took %.3fs", doc.name, time.perf_counter() - started)
        with lock:
            summaries.append(summary)  # cause

    with ThreadPoolExecutor(max_workers=max_workers) as executor:
        futures = [executor.submit(process_document, doc) for doc in documents]
    for future in futures:
        future.result()
    if failed:
        log.warning("%d files could not be summarised", len(failed))
    return summaries


def build_prompt(summaries, limit=MAX_PROMPT_CHARS):
    """Join summaries until the context window is full."""
    parts, used = [], 0
    for summary in summaries:
        if used + len(summary["text"]) > limit:
            break
        parts.append(summary["text"])
        used += len(summary["text"]) + 1
    return "\n".join(parts), len(parts)


def render_readme(prompt, n_used, n_total):
    keywords = Counter(re.findall(r"about ([a-z, ]+);", prompt))
    words = Counter(w for group in keywords for w in group.split(", "))
    head = ", ".join(w for w, _ in sorted(words.items(), key=lambda kv: (-kv[1], kv[0]))[:6])
    lines = ["# Project overview", "", f"This project deals with {head}.", ""]
    lines += [f"_Based on {n_used} of {n_total} files._", "", "## Modules", ""]
    lines += [f"- {line}" for line in prompt.splitlines()]
    return "\n".join(lines) + "\n"


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    root = make_repository(Path("repository"))
    documents = load_documents(root)
    log.info("loaded %d documents", len(documents))
    model = ExtractiveModel(documents)
    summaries = generate_all_summaries(documents, model)
    prompt, n_used = build_prompt(summaries)
    readme = render_readme(prompt, n_used, len(documents))
    Path("README.md").write_text(readme)
    Path("summaries.json").write_text(json.dumps(summaries, indent=1))
    print(f"{len(summaries)} summaries, {n_used} fit the prompt")
    print(readme.splitlines()[2])
    for line in prompt.splitlines()[:6]:
        print("  " + line)


if __name__ == "__main__":
    main()
