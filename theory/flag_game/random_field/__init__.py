"""Eq. 9 of [002]: agents with private fields h_i who feel the social field J m, and its solutions."""

from theory.flag_game.random_field._bifurcation import random_field_bifurcation as random_field_bifurcation
from theory.flag_game.random_field._bifurcation import random_field_pitchfork as random_field_pitchfork
from theory.flag_game.random_field._field_law import FieldLaw as FieldLaw
from theory.flag_game.random_field._field_law import bimodal_fields as bimodal_fields
from theory.flag_game.random_field._field_law import normal_fields as normal_fields
from theory.flag_game.random_field._fixed_points import random_field_fixed_points as random_field_fixed_points
from theory.flag_game.random_field._phase_diagram import random_field_phase_diagram as random_field_phase_diagram
