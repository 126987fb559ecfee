"""Lifelong learning toy benchmark."""
from .benchmark import get_benchmark, list_suites
from .policy import MLPPolicy

__all__ = ["get_benchmark", "list_suites", "MLPPolicy"]
