"""Drawings of results: a module for each subject, with a function for each view that draws one panel."""
