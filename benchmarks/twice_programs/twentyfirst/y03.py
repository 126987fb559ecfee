"""Similar-ticket search for a support desk.

Trains paragraph vectors on the ticket archive, infers a vector for every
incoming ticket and writes the nearest archived tickets per request together
with the routing accuracy that goes on the weekly slide.

Modelled on: https://github.com/piskvorky/gensim/issues/2847
"""
import json
import logging
import time

import numpy as np

from y03_pkg.archive import load_archive, load_incoming
from y03_pkg.model import TicketModel
from y03_pkg.routing import neighbour_table, routing_accuracy

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
logging.getLogger("gensim").setLevel(logging.WARNING)
log = logging.getLogger("tickets")
SEED = 11


def main():
    t0 = time.perf_counter()
    archive = load_archive(2600, SEED)
    incoming = load_incoming(120, SEED + 1)
    log.info("%d archived, %d incoming tickets", len(archive), len(incoming))
    model = TicketModel(vector_size=40, epochs=5, seed=SEED).fit(archive)
    vectors = model.transform(incoming)
    table = neighbour_table(model, vectors, incoming, archive, k=5)
    acc = routing_accuracy(table)
    np.save("incoming_vectors.npy", vectors)
    with open("similar_tickets.json", "w") as fh:
        json.dump({"accuracy": acc, "tickets": table}, fh, indent=1)
    print(f"routing accuracy {acc:.4f}")
    for row in table[:5]:
        best = row["neighbours"][0]
        print(f"{row['ticket']}  ->  {best['ticket']}  {best['similarity']:.6f}")
    log.info("finished in %.1f s", time.perf_counter() - t0)


if __name__ == "__main__":
    main()
