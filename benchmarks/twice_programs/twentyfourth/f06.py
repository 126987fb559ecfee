"""Topics of a help desk's tickets.

Builds a corpus of support tickets from hidden themes, cleans and counts the
words, fits an LDA topic model with gensim, names the topics by their strongest
words and reports which team each topic goes to.

Modelled on: https://stackguides.com/questions/9470899/how-does-lda-give-consistent-results
"""
import json
import logging
import random
import re
from collections import Counter

from gensim.corpora import Dictionary
from gensim.models import LdaModel

log = logging.getLogger("tickets")

THEMES = {
    "network": "router wifi cable signal outage ping modem latency ethernet vpn proxy firewall".split(),
    "billing": "invoice refund charge card payment overdue amount receipt tax account bank credit".split(),
    "hardware": "screen keyboard battery laptop charger fan disk memory printer paper toner mouse".split(),
    "access": "password login reset token locked user role permission account group mail signature".split(),
    "software": "crash update install version licence error plugin office browser restart driver patch".split(),
}
FILLER = "please hello thanks problem since today yesterday again help cannot urgent still customer".split()
STOP = {"please", "hello", "thanks", "again", "since"}


def make_tickets(count, seed):
    """Each ticket mixes one main theme, one side theme, and filler."""
    rng = random.Random(seed)
    names = list(THEMES)
    tickets = []
    for number in range(count):
        main, side = rng.sample(names, 2)
        words = []
        for _ in range(rng.randint(18, 45)):
            draw = rng.random()
            if draw < 0.6:
                words.append(rng.choice(THEMES[main]))
            elif draw < 0.75:
                words.append(rng.choice(THEMES[side]))
            else:
                words.append(rng.choice(FILLER))
        tickets.append({"id": number, "team": main, "text": " ".join(words) + "."})
    return tickets


def tokenize(text):
    return [w for w in re.findall(r"[a-z]+", text.lower()) if w not in STOP]


def build_corpus(tickets):
    texts = [tokenize(t["text"]) for t in tickets]
    dictionary = Dictionary(texts)
    dictionary.filter_extremes(no_below=5, no_above=0.6)
    bows = [dictionary.doc2bow(text) for text in texts]
    log.info("%d tickets, %d words", len(bows), len(dictionary))
    return dictionary, bows


class TopicReport:
    def __init__(self, dictionary, topics=6, passes=4):
        self.dictionary = dictionary
        self.topics = topics
        self.passes = passes
        self.model = None

    def fit(self, bows):
        self.model = LdaModel(  # cause
            corpus=bows,
            id2word=self.dictionary,
            num_topics=self.topics,
            passes=self.passes,
            chunksize=400,
            alpha="symmetric",
        )
        return self

    def label(self, topic, count=6):
        return [word for word, _ in self.model.show_topic(topic, topn=count)]

    def main_topic(self, bow):
        weights = self.model.get_document_topics(bow, minimum_probability=0.0)
        return max(weights, key=lambda pair: (round(pair[1], 6), -pair[0]))


def route(report, tickets, bows):
    """Which team owns each topic, by majority of its tickets."""
    owners = {topic: Counter() for topic in range(report.topics)}
    assigned = []
    for ticket, bow in zip(tickets, bows):
        topic, weight = report.main_topic(bow)
        owners[topic][ticket["team"]] += 1
        assigned.append({"id": ticket["id"], "topic": int(topic), "weight": round(float(weight), 4)})
    return owners, assigned


def purity(owners):
    total = sum(sum(c.values()) for c in owners.values())
    return sum(max(c.values(), default=0) for c in owners.values()) / total


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    log.setLevel(logging.INFO)
    tickets = make_tickets(1200, seed=31)
    dictionary, bows = build_corpus(tickets)
    report = TopicReport(dictionary).fit(bows)
    owners, assigned = route(report, tickets, bows)
    for topic in range(report.topics):
        team = max(sorted(owners[topic]), key=owners[topic].get, default="-")
        size = sum(owners[topic].values())
        print(f"topic {topic} ({size:4d} tickets, {team}): {', '.join(report.label(topic))}")
    print(f"purity {purity(owners):.4f}")
    with open("assigned.json", "w") as handle:
        json.dump(assigned, handle, indent=0)
    with open("topics.json", "w") as handle:
        json.dump({t: report.label(t, 10) for t in range(report.topics)}, handle, indent=1)


if __name__ == "__main__":
    main()
