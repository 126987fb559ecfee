from .dirt import Dirt
from .lines import Lines
