"""Mechanism 1 of [002], random fields and social coupling: parameters, simulator, and fits to measured endpoints."""

from theory.flag_game.mechanism1._endpoints import ENDPOINTS as ENDPOINTS
from theory.flag_game.mechanism1._endpoints import EndpointCounts as EndpointCounts
from theory.flag_game.mechanism1._endpoints import Source as Source
from theory.flag_game.mechanism1._endpoints import read_counts as read_counts
from theory.flag_game.mechanism1._fit import fit as fit
from theory.flag_game.mechanism1._parameters import APPENDIX_E as APPENDIX_E
from theory.flag_game.mechanism1._parameters import PARAMETERS as PARAMETERS
from theory.flag_game.mechanism1._parameters import Mechanism1 as Mechanism1
from theory.flag_game.mechanism1._posterior import posterior as posterior
from theory.flag_game.mechanism1._zealots import copying_law as copying_law
from theory.flag_game.mechanism1._zealots import fit_copying as fit_copying
