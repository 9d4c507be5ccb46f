"""Eq. 9 of [002] and its solutions: agents with private fields h_i in the social field J m."""

from theory.flag_game.random_field._field_law import FieldLaw as FieldLaw
from theory.flag_game.random_field._fixed_points import bifurcation as bifurcation
from theory.flag_game.random_field._fixed_points import fixed_points as fixed_points
from theory.flag_game.random_field._fixed_points import pitchfork as pitchfork
from theory.flag_game.random_field._phase_diagram import phase_diagram as phase_diagram
