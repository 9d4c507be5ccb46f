"""Checks of the agents, crops and countries of a flag game."""

from __future__ import annotations

from collections.abc import Sequence

from meanfield import InputError
from meanfield.toolbox import one_of, shown
from policy_extraction._toolbox.texts import check_kept, check_name
from policy_extraction.flag_game._asking import Agent
from policy_extraction.flag_game._protocols import PROTOCOLS

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def check_team(
    agents: Sequence[Agent], crops: Sequence[bytes], countries: Sequence[str], protocol: str, manager: Agent | None
) -> None:
    """InputError unless they can play this protocol together."""
    one_of("protocol", protocol, PROTOCOLS)
    if len(agents) < 2:
        raise InputError(f"agents: there are {len(agents)}, expected at least 2")
    if len(crops) != len(agents):
        raise InputError(f"crops: there are {len(crops)}, expected one for each of {len(agents)} agents")
    if (manager is None) == (protocol == "manager"):
        expected = "one agent more" if manager is None else "None"
        raise InputError(f"manager = {getattr(manager, 'name', None)}: expected {expected} in the {protocol} protocol")
    for number, agent in enumerate((*agents, *([] if manager is None else [manager]))):
        check_agent(f"agent {number}", agent)
    for number, crop in enumerate(crops):
        check_crop(f"crop {number}", crop)
    check_countries(countries)


def check_agent(name: str, agent: object) -> None:
    """InputError unless the agent has a name and can answer."""
    if not callable(getattr(agent, "complete", None)) or not isinstance(getattr(agent, "name", None), str):
        raise InputError(f"{name} = {shown(agent)}: expected a name and a method complete, as OpenAIBackend has them")
    check_kept({f"{name}: its name": agent.name})


def check_crop(name: str, crop: object) -> None:
    """InputError unless the crop is a PNG file."""
    if not isinstance(crop, bytes) or not crop.startswith(PNG_SIGNATURE):
        raise InputError(f"{name}: expected the bytes of a PNG file")


def check_countries(countries: Sequence[str]) -> None:
    """InputError unless there are at least two countries, each once."""
    if not all(isinstance(country, str) and country.strip() and "\n" not in country for country in countries):
        raise InputError(f"countries = {shown(list(countries))}: expected names on one line each")
    for country in countries:
        check_name("countries", country)
    twice = [country for i, country in enumerate(countries) if country in countries[:i]]
    if twice:
        raise InputError(f"countries holds {twice[0]} twice: expected each country once")
    if len(countries) < 2:
        raise InputError(f"countries = {shown(list(countries))}: expected at least two")
