"""The exceptions of all packages, by what a user can do about them."""

from __future__ import annotations

LONGEST_MESSAGE = 1500  # characters; a value that came from a file can be of any length


class MeanfieldError(Exception):
    """Base of the errors that this package raises on purpose; the message is one line.

    Examples
    --------
    >>> try:
    ...     meanfield.load("no such file.nc")
    ... except meanfield.MeanfieldError as error:
    ...     print(f"{type(error).__name__}: {error}")
    InputError: path = no such file.nc: there is no such file
    """

    def __init__(self, message: object = "") -> None:
        line = " ".join(str(message).splitlines())
        half = LONGEST_MESSAGE // 2
        super().__init__(line if len(line) <= LONGEST_MESSAGE else f"{line[:half]} … {line[-half:]}")


class InputError(MeanfieldError, ValueError):
    """Change the call: the message names the argument, its value and what was expected.

    Examples
    --------
    >>> try:
    ...     meanfield.MemorySpace(n_words=1, memory_length=5)
    ... except meanfield.InputError as error:
    ...     print(error)
    n_words = 1: expected a whole number of at least 2
    """


class ModelError(MeanfieldError, RuntimeError):
    """Look at the language model or its server: it fails, refuses, or costs too much."""


class UnparsedError(ModelError):
    """A model gave no answer that can be used, however often it was asked."""


class StorageError(MeanfieldError):
    """Look at the disk: it is full, read-only or gone; the message says what is kept."""


class ConvergenceError(MeanfieldError, RuntimeError):
    """The mathematics did not converge: the message says how far it came and what may help.

    Attributes
    ----------
    best
        The best result so far, of the kind that the call returns, or what it was being computed from; None without one.

    Examples
    --------
    Agents who repeat what they heard last keep any share of the words, but for errors of 1e-15:

    >>> policy = meanfield.make_policy(np.array([0.5, 1, 0, 1, 0]).clip(1e-15, 1 - 1e-15), ["A", "B"])
    >>> try:
    ...     meanfield.fixed_points(policy)
    ... except meanfield.ConvergenceError as error:
    ...     print(error)
    {A, B}: there is a fixed point, but rounding hides at which share: ...
    """

    def __init__(self, message: object = "", best: object = None) -> None:
        super().__init__(message)
        self.best = best


def reason(error: BaseException) -> str:
    """The message of a library's exception, in one line of at most 200 characters."""
    return shortened(" ".join(str(error).split()), 200) or type(error).__name__


def shortened(text: str, most: int) -> str:
    """The text, or its words within so many characters and a mark that it goes on; only a very long word is cut."""
    if len(text) <= most:
        return text
    whole = text[: most - 1].rpartition(" ")[0]
    return f"{whole} …" if len(whole) > most // 2 else f"{text[: most - 1]}…"
