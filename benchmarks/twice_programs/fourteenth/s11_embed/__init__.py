from .featurizer import Featurizer, predict_structure
from .encoder import StructureEncoder

__all__ = ["Featurizer", "StructureEncoder", "predict_structure"]
