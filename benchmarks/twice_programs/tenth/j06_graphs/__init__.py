from .graph import Graph, planted_partition
from .memo import Memo

__all__ = ["Graph", "Memo", "planted_partition"]
