"""Figures and tables of the papers: items of each paper, which simulate what they need, and scripts that read files."""

from meanfield.toolbox import require_rooms

require_rooms("policy_extraction", "theory", "validation")
