"""Ends of single runs of the Flag Game from the measured evidence of their agents: forecasts, scores, phases."""

from theory.flag_game.evidence._copying import copying_endpoints as copying_endpoints
from theory.flag_game.evidence._copying import phase_boundaries as phase_boundaries
from theory.flag_game.evidence._fit import MODELS as MODELS
from theory.flag_game.evidence._fit import fit as fit
from theory.flag_game.evidence._forecasts import against_evidence as against_evidence
from theory.flag_game.evidence._forecasts import cross_validate as cross_validate
from theory.flag_game.evidence._forecasts import forecast as forecast
from theory.flag_game.evidence._forecasts import score as score
from theory.flag_game.evidence._runs import Runs as Runs
from theory.flag_game.evidence._runs import read_runs as read_runs
