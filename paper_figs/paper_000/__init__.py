"""Figures and tables of [000], some of them also in [001]."""
