"""Figures and tables of [004], Group size effects and collective misalignment in LLM multi-agent systems."""
