"""From a language model to a policy: the probability of each word in every memory state of the naming game.

A record holds the measured log-probabilities over the whole vocabulary. A policy is a softmax of a record over
the words at some temperature. PyTorch and transformers are imported only when a model runs.

Packages: `prompts` (templates, payoffs, orders), `backends` (local weights, servers, tables), `measuring` (records,
variants, sampling), `checks` (comprehension, generation, live populations), `flag_game` and `norms`.
"""

import os
from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

# Spinning OpenMP threads beside another busy process slow each other 15-fold. The setting is read when PyTorch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from meanfield.toolbox import UnparsedError as UnparsedError
    from policy_extraction import backends as backends
    from policy_extraction import checks as checks
    from policy_extraction import flag_game as flag_game
    from policy_extraction import measuring as measuring
    from policy_extraction import norms as norms
    from policy_extraction import prompts as prompts
    from policy_extraction.backends import open_backend as open_backend
    from policy_extraction.backends.api import Limits as Limits
    from policy_extraction.backends.local import SMOLLM2 as SMOLLM2
    from policy_extraction.checks import check_policy as check_policy
    from policy_extraction.checks import policy_warnings as policy_warnings
    from policy_extraction.measuring import cost as cost
    from policy_extraction.measuring import extract as extract
    from policy_extraction.measuring import lazy_policy as lazy_policy
    from policy_extraction.measuring import listener as listener
    from policy_extraction.measuring import measure as measure
    from policy_extraction.measuring import policy_from_record as policy_from_record
    from policy_extraction.measuring import predicted_policy as predicted_policy
    from policy_extraction.measuring import robustness as robustness
    from policy_extraction.measuring import sample_policies as sample_policies
    from policy_extraction.prompts import load_template as load_template
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
