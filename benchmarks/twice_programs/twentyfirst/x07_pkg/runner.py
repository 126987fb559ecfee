"""Process the documents of a directory."""
import logging
from concurrent.futures import ThreadPoolExecutor, as_completed

from .extract import annotate

log = logging.getLogger(__name__)


def read_document(path):
    return path.name, annotate(path.read_text())


def extract_directory(paths, store, graph, workers):
    """Annotate in parallel, ground and count what comes back."""
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(read_document, p) for p in paths]
        for done, future in enumerate(as_completed(futures), 1):  # cause
            name, relations = future.result()
            for cause, effect in relations:
                graph.add(store.ground(cause), store.ground(effect))
            if done % 40 == 0:
                log.info("%d documents, last %s", done, name)
