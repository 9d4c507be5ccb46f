"""Figures and tables of the papers: each script reads results from files and computes nothing new."""
