"""The exceptions that all rooms know."""

LONGEST_MESSAGE = 1500  # characters; a value that came from a file can be of any length


class InputError(ValueError):
    """Wrong input: the message, one line, names the argument, its value and what was expected."""

    def __init__(self, message: object = "") -> None:
        line = " ".join(str(message).splitlines())
        half = LONGEST_MESSAGE // 2
        super().__init__(line if len(line) <= LONGEST_MESSAGE else f"{line[:half]} … {line[-half:]}")


class UnparsedError(RuntimeError):
    """A model gave no answer that can be used, however often it was asked."""


def reason(error: BaseException) -> str:
    """What an exception of a library says, in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__
