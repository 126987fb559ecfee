from .discretize import QuartileDiscretizer
from .tabular import Explanation, TabularExplainer

__all__ = ["Explanation", "QuartileDiscretizer", "TabularExplainer"]
