"""The one exception that a wrong input raises."""


class InputError(ValueError):
    """Wrong input: the message names the argument, its value and what was expected."""
