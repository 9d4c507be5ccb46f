# /// script
# dependencies = ["ppsim==0.1.6"]
# [tool.uv]
# override-dependencies = ["numpy<2", "pandas<3"]  # those that it asks for have no wheels
# [tool.uv.extra-build-dependencies]
# ppsim = ["setuptools<81", "wheel", "cython<3", "numpy<2"]  # which it does not name
# ///
"""ppsim of the release before, which its own script runs too."""

import ppsim_peer  # noqa: F401
