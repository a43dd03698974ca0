"""What carries out tool calls. In this version: the commands of quality gates."""
