"""Figures and tables of the papers: each script reads results from files and computes nothing new."""

from paper_figs import mean_field_dynamics as mean_field_dynamics
from paper_figs import table_s1 as table_s1
from paper_figs import theory_and_simulation as theory_and_simulation
