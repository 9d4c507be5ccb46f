"""Mechanism 2 of [002], uptake and rewrite of reports, fitted to the memory-conflict probe."""

from theory.flag_game.mechanism2._fit import fit as fit
from theory.flag_game.mechanism2._memory_conflict import memory_conflict_response as memory_conflict_response
from theory.flag_game.mechanism2._memory_conflict import memory_conflict_table as memory_conflict_table
