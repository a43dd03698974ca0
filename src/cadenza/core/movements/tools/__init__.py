"""Movements under ``control: tools``: an agent that acts by tool calls and ends by one."""
