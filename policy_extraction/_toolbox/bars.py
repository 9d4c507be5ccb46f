"""Progress bars of work that waits for a model."""

from __future__ import annotations


def hidden(progress: bool | None) -> bool | None:
    """The argument `disable` of tqdm: None shows bars on terminals only."""
    return None if progress is None else not progress
