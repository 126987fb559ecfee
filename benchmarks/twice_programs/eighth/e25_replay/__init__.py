from .launch import synthesise

__all__ = ["synthesise"]
