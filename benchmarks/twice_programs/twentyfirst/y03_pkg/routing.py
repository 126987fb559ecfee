"""Nearest archived tickets and a majority vote on the queue."""
from collections import Counter


def neighbour_table(model, vectors, incoming, archive, k):
    queue = {t.number: t.queue for t in archive}
    rows = []
    for t, v in zip(incoming, vectors):
        near = model.most_similar(v, k)
        votes = Counter(queue[n] for n, _ in near)
        top = max(sorted(votes), key=lambda q: votes[q])
        rows.append({"ticket": t.number, "queue": t.queue, "routed_to": top,
                     "neighbours": [{"ticket": n, "queue": queue[n], "similarity": round(float(s), 6)}
                                    for n, s in near]})
    return rows


def routing_accuracy(table):
    return sum(r["queue"] == r["routed_to"] for r in table) / len(table)
