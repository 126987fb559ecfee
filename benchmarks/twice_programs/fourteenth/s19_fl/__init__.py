from .client import ClientTrainer
from .data import partition_dirichlet, synthetic_digits
from .server import FedAvgServer

__all__ = ["ClientTrainer", "FedAvgServer", "partition_dirichlet", "synthetic_digits"]
