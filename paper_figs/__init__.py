"""Figures and tables of the papers: items of each paper, which simulate what they need, and scripts that read files."""

from meanfield.toolbox import require_packages

require_packages("policy_extraction", "theory", "validation")
