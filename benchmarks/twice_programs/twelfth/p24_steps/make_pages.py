"""Writes small HTML pages with headings, paragraphs and lists."""
import argparse
import random
from pathlib import Path

WORDS = {
    "h2": "apply overview eligibility contact before guidance".split(),
    "p": "you must send the form to the office when your income changes this year".split(),
    "li": "passport number bank statement proof of address council letter".split(),
}


def make_page(rng, number):
    out = [f"<html><title>Page {number}</title><body>"]
    for _ in range(rng.randint(4, 7)):
        out.append(f"<h2>{' '.join(rng.sample(WORDS['h2'], 2))}</h2>")
        for _ in range(rng.randint(2, 5)):
            words = rng.choices(WORDS["p"] + WORDS["li"][:3], k=rng.randint(6, 14))
            out.append(f"<p>{' '.join(words)}</p>")
        for _ in range(rng.randint(1, 5)):
            words = rng.choices(WORDS["li"] + WORDS["p"][:4], k=rng.randint(2, 6))
            out.append(f"<li>{' '.join(words)}</li>")
    out.append("</body></html>")
    return "\n".join(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--pages", type=int, default=24)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--out", type=Path, required=True)
    args = ap.parse_args()
    rng = random.Random(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    for k in range(args.pages):
        (args.out / f"page{k:03d}.html").write_text(make_page(rng, k))


if __name__ == "__main__":
    main()
