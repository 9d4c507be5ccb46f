"""Checks of an error message: one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from meanfield import InputError


@contextmanager
def refused(match: str = ".", *errors: type[Exception]) -> Iterator[None]:
    """The block raises one of the errors, by default InputError, whose message matches and is a single short line."""
    with pytest.raises(errors or InputError, match=match) as error:
        yield
    assert "\n" not in str(error.value) and len(str(error.value)) < 700
