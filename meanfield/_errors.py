"""The exceptions that all rooms know."""


class InputError(ValueError):
    """Wrong input: the message names the argument, its value and what was expected."""


class UnparsedError(RuntimeError):
    """A model gave no answer that can be used, however often it was asked."""
