"""The exceptions that all rooms know."""


class InputError(ValueError):
    """Wrong input: the message names the argument, its value and what was expected."""


class UnparsedError(RuntimeError):
    """A model gave no answer that can be used, however often it was asked."""


def reason(error: BaseException) -> str:
    """What an exception of a library says, in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__
