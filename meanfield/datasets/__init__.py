"""Published measurements, found locally, in the cache, or downloaded; and policies that come with the package."""

from meanfield.datasets._ai_norms import RealPopulations as RealPopulations
from meanfield.datasets._ai_norms import ai_norms as ai_norms
from meanfield.datasets._flag_game import flag_game as flag_game
from meanfield.datasets._from_events import from_events as from_events
from meanfield.datasets._interactions import interactions as interactions
from meanfield.datasets._llm_group_size import llm_group_size as llm_group_size
from meanfield.datasets._read_messages import read_messages as read_messages
from meanfield.datasets._smollm2 import smollm2 as smollm2
