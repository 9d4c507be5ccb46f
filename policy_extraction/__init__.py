"""From a language model to a policy: what it would say in every memory state of the naming game.

The record of a measurement (log-probabilities over the whole vocabulary) and the policy made of it (a softmax over the
words at some temperature) are kept apart. PyTorch and transformers are needed only when a model is really run.
"""

import os

# Spinning OpenMP threads beside another busy process slow each other 15-fold. The setting is read when PyTorch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from policy_extraction._extract import extract as extract
from policy_extraction._record import policy_from_record as policy_from_record
from policy_extraction._source import SMOLLM2 as SMOLLM2
from policy_extraction._template import NAMING_GAME as NAMING_GAME
from policy_extraction._template import Payoffs as Payoffs
from policy_extraction._template import Template as Template
