from .blobs import BlobStore
from .folds import assign_folds

__all__ = ["BlobStore", "assign_folds"]
