"""Errors that a user can cause: one class and one exit status for each kind.

A message says what happened and where; ``hint`` says what to do. cli/ prints both and exits with
``exit_code``; nothing below it prints or exits. Codes 1 and 2 are reserved for bugs and bad arguments.
"""

from __future__ import annotations


class ReprobuildError(Exception):
    """The base class; never raised itself."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RequestError(ReprobuildError):
    """The request (file or flags) is not valid."""

    exit_code = 3


class LockError(ReprobuildError):
    """The lock is missing, not valid, was edited, or belongs to another request."""

    exit_code = 4


class ResolveError(ReprobuildError):
    """No set of packages satisfies the request, or an index cannot be read.

    ``cuda``: the one with which it would be satisfied, where that is known.
    """

    exit_code = 5

    def __init__(self, message: str, *, hint: str = "", cuda: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.cuda = cuda


class FetchError(ReprobuildError):
    """A locked artifact could not be fetched, or its bytes are not those locked."""

    exit_code = 6


class HostError(ReprobuildError):
    """This machine lacks a program, a namespace, a device or a permission."""

    exit_code = 7


class BuildError(ReprobuildError):
    """Locked artifacts could not be made into an image, or a source package into a wheel."""

    exit_code = 8


class SelfTestError(ReprobuildError):
    """The image did not pass its self-test: it failed, crashed, hung or gave no valid report."""

    exit_code = 9


class ImageError(ReprobuildError):
    """No such image, or the image store is damaged."""

    exit_code = 10


class StorageError(ReprobuildError):
    """The disk is full, or a file or folder cannot be written."""

    exit_code = 11


class RenderError(ReprobuildError):
    """A value would break out of its line in a rendered file."""

    exit_code = 12


class DifferenceError(ReprobuildError):
    """Two images differ, or an image is not what its lock says."""

    exit_code = 13


class EngineError(ReprobuildError):
    """Docker or Podman stopped, is full, or refused a request."""

    exit_code = 14


class RegistryError(ReprobuildError):
    """A registry cannot be reached or trusted, or refused a request."""

    exit_code = 15


class RepeatError(ReprobuildError):
    """A program did not repeat, or its runs cannot be compared."""

    exit_code = 16


class EvidenceError(ReprobuildError):
    """The evidence on an image is missing, not valid, or does not meet the policy."""

    exit_code = 17
