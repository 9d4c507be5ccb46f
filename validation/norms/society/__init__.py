"""Societies of agents who keep databases of norms and leave every decision to operations of any kind."""
