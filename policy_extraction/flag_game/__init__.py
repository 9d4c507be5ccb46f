"""Language models that play the Flag Game of [002]: its prompts, its three protocols, and a stand-in for a model.

Crops are PNG files and countries are names; nothing here knows how flags are drawn.
"""

from policy_extraction.flag_game._memory_conflict import probe_memory_conflict as probe_memory_conflict
from policy_extraction.flag_game._play import play as play
from policy_extraction.flag_game._prompts import FLAG_GAME_002 as FLAG_GAME_002
from policy_extraction.flag_game._prompts import FlagGamePrompts as FlagGamePrompts
from policy_extraction.flag_game._prompts import load_prompts as load_prompts
from policy_extraction.flag_game._stand_in import StandIn as StandIn
