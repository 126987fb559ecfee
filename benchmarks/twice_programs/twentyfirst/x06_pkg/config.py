"""Settings of one reconstruction."""
from dataclasses import dataclass


@dataclass
class Config:
    n_views: int = 20
    n_points: int = 260
    outlier_ratio: float = 0.3
    seed: int = 5489
    max_iterations: int = 4000
    pixel_threshold: float = 1.5
    sample_size: int = 8
    confidence: float = 0.99
    workers: int = 4  # cause
