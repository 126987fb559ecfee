"""Document degradations: every augmentation is a callable on a grey image."""
from q14_augment.base import Augmentation, AugmentationSequence
from q14_augment.drum import DirtyDrum
from q14_augment.ink import Brightness, InkBleed
from q14_augment.page import draw_page, features

__all__ = [
    "Augmentation",
    "AugmentationSequence",
    "DirtyDrum",
    "Brightness",
    "InkBleed",
    "draw_page",
    "features",
]
