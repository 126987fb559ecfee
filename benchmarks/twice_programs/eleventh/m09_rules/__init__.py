"""Validation rules over reported facts."""
from .model import Context, Fact, FactModel
from .engine import RuleEngine
from .report import Report

__all__ = ["Context", "Fact", "FactModel", "RuleEngine", "Report"]
