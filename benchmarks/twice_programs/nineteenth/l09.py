"""Build a corpus from a newspaper database and compare its vocabulary.

Fills an SQLite database with digitised articles, draws a corpus that meets
the criteria (years, doctype, language), counts words, computes keyness
against the whole collection and writes the word lists.

Modelled on: https://github.com/NationalLibraryOfNorway/DHLAB/issues/151
"""
import csv
import json
import math
import random
import re
import sqlite3
from collections import Counter
from pathlib import Path

SEED = 1814
TOPICS = {
    "shipping": "skip havn last kaptein frakt storm kai mast seil dampskip reder mannskap".split(),
    "politics": "valg storting lov parti minister debatt forslag stemme regjering komite budsjett".split(),
    "farming": "korn hest bonde mark melk avling gård såing potet ku marked høst".split(),
    "culture": "teater bok dikt musikk scene forfatter konsert kunst maleri fiolin publikum".split(),
}
COMMON = "og i det som en på er til av for med at har den ikke et om han fra var".split()
TOKEN = re.compile(r"\w+")


def write_article(rng, topic):
    words = []
    for _ in range(rng.randint(40, 120)):
        r = rng.random()
        if r < 0.55:
            words.append(rng.choice(COMMON))
        elif r < 0.9:
            words.append(rng.choice(TOPICS[topic]))
        else:
            words.append(rng.choice(TOPICS[rng.choice(sorted(TOPICS))]))
    return " ".join(words)


def create_database(path, n_docs, rng):
    con = sqlite3.connect(path)
    con.execute(
        "CREATE TABLE document (dhlabid INTEGER PRIMARY KEY, doctype TEXT, lang TEXT, "
        "year INTEGER, title TEXT, topic TEXT, body TEXT)"
    )
    rows = []
    for i in range(n_docs):
        topic = rng.choice(sorted(TOPICS))
        rows.append((
            100000 + i,
            rng.choice(["digavis", "digavis", "digavis", "digibok"]),
            rng.choice(["nob", "nob", "nno"]),
            rng.randint(1850, 1920),
            f"{topic.title()} nr {rng.randint(1, 400)}",
            topic,
            write_article(rng, topic),
        ))
    con.executemany("INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    con.execute("CREATE INDEX ix_year ON document (year)")
    con.commit()
    return con


class Corpus:
    """Documents that satisfy the criteria, at most ``limit`` of them."""

    def __init__(self, con, doctype=None, lang=None, from_year=None, to_year=None, limit=500, order_by="random"):
        self.con = con
        where, params = ["1 = 1"], []
        if doctype:
            where.append("doctype = ?")
            params.append(doctype)
        if lang:
            where.append("lang = ?")
            params.append(lang)
        if from_year:
            where.append("year >= ?")
            params.append(from_year)
        if to_year:
            where.append("year <= ?")
            params.append(to_year)
        criteria = " AND ".join(where)
        order = "dhlabid"
        if order_by == "random":
            order = "random()"  # cause
        sql = f"SELECT dhlabid, year, title, topic, body FROM document WHERE {criteria} ORDER BY {order} LIMIT ?"
        self.docs = con.execute(sql, (*params, limit)).fetchall()  # cause

    def __len__(self):
        return len(self.docs)

    def frequencies(self):
        counts = Counter()
        for *_, body in self.docs:
            counts.update(TOKEN.findall(body))
        return counts

    def timeline(self):
        years = Counter(d[1] // 10 * 10 for d in self.docs)
        return dict(sorted(years.items()))

    def collocations(self, word, window=3):
        found = Counter()
        for *_, body in self.docs:
            toks = TOKEN.findall(body)
            for i, tok in enumerate(toks):
                if tok == word:
                    found.update(toks[max(0, i - window):i] + toks[i + 1:i + 1 + window])
        return found


def keyness(part, whole):
    """Log-likelihood of each word in the part against the whole."""
    n1, n2 = sum(part.values()), sum(whole.values())
    out = []
    for w, a in part.items():
        b = whole[w]
        e1 = n1 * (a + b) / (n1 + n2)
        e2 = n2 * (a + b) / (n1 + n2)
        ll = 2 * (a * math.log(a / e1) + b * math.log(b / e2))
        out.append((w, a, b, round(ll if a > e1 else -ll, 4)))
    return sorted(out, key=lambda r: (-r[3], r[0]))


def main():
    rng = random.Random(SEED)
    out = Path("korpus")
    out.mkdir(exist_ok=True)
    con = create_database(out / "avis.db", 20000, rng)
    whole = Corpus(con, limit=100000, order_by="id").frequencies()

    corpus = Corpus(con, doctype="digavis", lang="nob", from_year=1870, to_year=1900, limit=250)
    part = corpus.frequencies()
    with open(out / "documents.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["dhlabid", "year", "title", "topic"])
        writer.writerows(sorted(d[:4] for d in corpus.docs))
    with open(out / "keyness.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["word", "corpus", "collection", "ll"])
        writer.writerows(keyness(part, whole))
    coll = corpus.collocations("storm")
    summary = {
        "documents": len(corpus),
        "tokens": sum(part.values()),
        "types": len(part),
        "timeline": corpus.timeline(),
        "storm": sorted(coll.items(), key=lambda kv: (-kv[1], kv[0]))[:8],
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False))
    print(json.dumps(summary, ensure_ascii=False))
    con.close()


if __name__ == "__main__":
    main()
