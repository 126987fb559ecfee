import uuid

import numpy as np


def random_name():
    return f"shard-{uuid.uuid4().hex[:8]}"  # cause


def write_shards(table, folder, count):
    folder.mkdir(exist_ok=True)
    for part in np.array_split(table, count):
        np.save(folder / f"{random_name()}.npy", part)
