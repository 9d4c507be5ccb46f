"""The documentation site: `make docs` builds it."""

import doctest
import os
import sys
from importlib.metadata import files
from pathlib import Path

import meanfield

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))
# Pages and notebooks take published measurements from the folder beside the project, as the tests do.
os.environ.setdefault("MEANFIELD_DATA", str(DOCS.parents[1] / "shared" / "data"))
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm would rather draw its bars with ipywidgets
# Cells are run in other folders.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")]))

project = "meanfield"
author = "the developers of meanfield"
copyright = "2026, the developers of meanfield"
version = release = meanfield.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinxcontrib.bibtex",
    "sphinx_design",
    "reference",
    "gallery",
    "copies",
    "checks",
    "docstrings",
]
exclude_patterns = ["conf.py", "pictures.py", "_build", "_extensions", "_templates", "**.ipynb_checkpoints"]
nitpicky = True
# Types in signatures of other packages, whose pages are elsewhere as the build is offline, and of inner modules.
nitpick_ignore_regex = [
    (r"py:.*", r"(collections|fractions|jaxtyping|matplotlib|numpy|os|pandas|pathlib|rich|scipy|sympy|xarray)\..*"),
    (r"py:.*", r"(diffrax|np|pd|typing|xr)\..*"),
    (r"py:class", r"ndarray|Array|Axes|Bool|Float|Int|.*\._.*"),
]
default_role = "name"
templates_path = ["_templates"]

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
doctest_default_flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE  # as in tests/house/test_examples.py
doctest_global_setup = (
    "import numpy as np, pandas as pd, xarray as xr, meanfield, theory, validation, policy_extraction"
)

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / "executed")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

html_theme = "pydata_sphinx_theme"
html_title = "meanfield"
# MathJax out of a package, so that pages show mathematics without a network
MATHJAX = next(one for one in files("sphinx-mathjax-offline") if one.name == "tex-svg-full.js")
html_static_path = ["_static", str(MATHJAX.locate())]
mathjax_path = MATHJAX.name
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
}
