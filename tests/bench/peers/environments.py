"""Environments of the peers in the cache folder, apart from the one that the benches run in.

ppsim has two releases of interest, which exclude each other, and the older one needs an older NumPy.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from meanfield import cache_folder

HERE = Path(__file__).parent
INSTALL_SECONDS = 600


class NotMeasuredError(RuntimeError):
    """Why a line of a table stays empty."""


@dataclass(frozen=True)
class Peer:
    """A simulator, the script that runs it, and arguments of `pip install`, one list after the other."""

    name: str
    script: str
    environment: str = ""
    install: tuple[tuple[str, ...], ...] = ()


OWN = Peer("meanfield-llm", "own_peer.py")
# Its source distribution names neither its build requirements nor a NumPy that still has wheels.
OLD_PPSIM = Peer(
    "ppsim 0.1.6",
    "ppsim_peer.py",
    "ppsim_0",
    (
        ("--only-binary", ":all:", "setuptools<81", "wheel", "cython<3", "numpy<2", "pandas<3"),
        ("--only-binary", ":all:", "scipy", "natsort", "tqdm", "ipywidgets", "matplotlib", "numpy<2"),
        ("--no-deps", "--no-build-isolation", "ppsim==0.1.6"),
    ),
)
PPSIM = Peer("ppsim 1.0.2", "ppsim_peer.py", "current", (("ppsim==1.0.2",),))
REBOP = Peer("rebop 0.9.2", "rebop_peer.py", "current", (("rebop==0.9.2",),))
BATSS = Peer("batss 1.0.4", "batss_peer.py", "current", (("batss==1.0.4",),))
MESA = Peer("Mesa 3.3.1", "mesa_peer.py", "current", (("mesa==3.3.1",),))
# NDlib imports packages that it does not require.
EON, NDLIB, MESA_GRAPH = (
    Peer(name, "graph_peer.py", "graphs", (("networkx==3.6.1", *packages),))
    for name, packages in (
        ("EoN 2.0", ("eon==2.0",)),
        ("NDlib 6.0.1", ("ndlib==6.0.1", "six", "scikit-learn")),
        ("Mesa 3.3.1", ("mesa==3.3.1",)),
    )
)


@cache
def interpreter(peer: Peer) -> Path | str:
    """The interpreter that has `peer`, which is installed on first use; or why it could not be."""
    if not peer.install:
        return Path(sys.executable)
    folder = cache_folder() / "bench_peers" / peer.environment
    python = folder / "bin" / "python"
    marker = folder / f"{peer.name.replace(' ', '_')}.json"
    wanted = json.dumps(peer.install)
    if marker.exists() and marker.read_text() == wanted:
        return python
    print(f"installing {peer.name} into {folder}", flush=True)
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
        for arguments in peer.install:
            _pip(python, arguments)
    except (OSError, subprocess.SubprocessError) as error:
        lines = str(getattr(error, "stderr", None) or error).strip().splitlines()
        return "not installed: " + next((line for line in reversed(lines) if "ERROR" in line.upper()), lines[-1])
    marker.write_text(wanted)
    return python


def _pip(python: Path, arguments: tuple[str, ...]) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
