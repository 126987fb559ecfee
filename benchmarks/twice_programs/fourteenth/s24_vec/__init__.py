from .agent import QTable
from .vector_env import VectorEnv

__all__ = ["QTable", "VectorEnv"]
