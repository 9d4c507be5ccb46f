"""Figures and tables of the papers: items of each paper, which simulate what they need, and scripts that read files."""
