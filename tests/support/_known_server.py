"""A back end of the server with a known model, and what its errors must be."""

from __future__ import annotations

from typing import Any

import pytest

from policy_extraction.backends.api import OpenAIBackend

HIS_HER = ("his", "her")
GAME = {"words": HIS_HER, "memory_length": 1}


def backend(url: str, **options: Any) -> OpenAIBackend:
    return OpenAIBackend(
        **{"model": "known", "base_url": url, "backoff": 0.0, "prefill": "assistant", "max_retries": 1} | options
    )


def line(error: pytest.ExceptionInfo) -> str:
    message = str(error.value)
    assert "\n" not in message and len(message) < 700
    return message
