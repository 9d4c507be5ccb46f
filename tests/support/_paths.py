"""Where the project and these modules are, for tests that read documents or start processes."""

import os
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]


def importing(*folders: Path) -> dict[str, str]:
    """The environment of a process that imports the rooms, these modules and those of `folders`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, SUPPORT, *folders)))}
