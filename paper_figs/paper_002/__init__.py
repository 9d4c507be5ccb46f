"""Figures and tables of [002], Flag Game: interpreting decision mechanisms of bounded social agents."""
