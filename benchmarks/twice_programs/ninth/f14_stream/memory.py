"""A simple model of what a chunk costs."""
import logging

import psutil

log = logging.getLogger("ooc.memory")


def row_bytes(cols, overhead):
    """float64 copy of a row, with the temporaries of the solver."""
    return int(cols * 8 * overhead)


def rows_per_chunk(cols, share, overhead):
    free = psutil.virtual_memory().available  # cause
    log.info("%.2f GiB free", free / 2 ** 30)
    budget = free * share
    return int(budget // row_bytes(cols, overhead))
