import pyarrow.parquet as pq


class Lake:
    """A folder of parquet files that grows by one table a day."""

    def __init__(self, root):
        self.root = root
        self.rows = 0

    def append(self, table):
        pq.write_to_dataset(table, root_path=self.root, partition_cols=["station"])  # cause
        self.rows += table.num_rows

    def load(self, columns=None):
        return pq.read_table(self.root, columns=columns, use_threads=False)
