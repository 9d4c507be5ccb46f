"""A real HTTP server on loopback that stands for the repositories from which published data are downloaded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from meanfield.datasets import _ai_norms, _flag_game, _llm_group_size


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which the files of the folder can be fetched."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def put_flag_game(folder: Path, table: str, content: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes a table where upstream has it, and makes it the published one; returns the file."""
    known = _flag_game.TABLES[table]
    file = folder / known.commit / known.upstream
    file.parent.mkdir(parents=True, exist_ok=True)
    content.to_csv(file, index=False)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    monkeypatch.setitem(_flag_game.TABLES, table, known._replace(sha256=sha256))
    return file


def nothing_local(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str) -> None:
    """A machine with the package and a network only: an empty cache in `folder`, and `url` as the upstream."""
    monkeypatch.delenv("MEANFIELD_DATA", raising=False)
    monkeypatch.setenv("MEANFIELD_CACHE", str(folder / "cache"))
    monkeypatch.setattr(_flag_game, "REPOSITORY", url)
    monkeypatch.setattr(_ai_norms, "URL", f"{url}/")
    monkeypatch.setattr(_llm_group_size, "URL", f"{url}/{_llm_group_size.NAME}")
