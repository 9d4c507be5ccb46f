"""Figures and tables of the papers: items of each paper, which simulate what they need, and drawings of results."""

from meanfield.toolbox import require_packages

require_packages("policy_extraction", "theory", "validation")
