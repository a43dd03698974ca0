"""TAKT's piece files: the seed document's keys and those of its command line.

Both spellings of each thing are read (movements and steps, ``report`` and ``output_contracts.report``,
``output_contracts`` and ``report_formats`` as section map). Unknown keys are ignored with a warning,
because TAKT strips them silently.
"""

from __future__ import annotations

from cadenza.piece.dialects.grammar import Grammar

_PIECE = {
    "name": "what the piece is called",
    "description": "what it is for",
    "max_movements": "how many movements may be played in all",
    "max_steps": "the same in TAKT's later words",
    "initial_movement": "where the piece begins",
    "initial_step": "the same in TAKT's later words",
    "movements": "the parts of the piece",
    "steps": "the same in TAKT's later words",
    "loop_monitors": "cycles that a judge watches",
    "personas": "section map",
    "policies": "section map",
    "knowledge": "section map",
    "instructions": "section map",
    "output_contracts": "section map of report formats (seed document)",
    "report_formats": "section map of report formats (command line)",
    "piece_config": "provider for the whole piece; the rest is for TAKT's own agents",
    "workflow_config": "the same in TAKT's later words",
    "phases": "single or three: how a movement is asked",
    "control": "tags: how a movement says where it leads",
    "answer_agent": "read by TAKT alone",
    "interactive_mode": "read by TAKT alone",
    "permission_mode": "refused",
}

_LANE = {
    "name": "what the movement is called",
    "persona": "who performs it",
    "persona_name": "how the performer is shown",
    "policy": "rules of conduct, one or several",
    "knowledge": "reference texts, one or several",
    "instruction": "what to do",
    "instruction_template": "the same; wins over instruction",
    "rules": "the ways out",
    "report": "reports it owes",
    "output_contracts": "reports it owes (command line)",
    "edit": "whether files may be changed",
    "pass_previous_response": "whether it sees the last output",
    "provider": "which agent performs it",
    "model": "which model",
    "allowed_tools": "tools it may use",
    "required_permission_mode": "permission it needs at least",
    "quality_gates": "what must hold before it is done: words, or commands",
    "session": "continue or refresh the conversation",
    "description": "what it is for",
    "mcp_servers": "read by TAKT alone",
    "provider_options": "read by TAKT alone",
    "permission_mode": "refused",
}

TAKT = Grammar(
    dialect="takt",
    strict=False,
    piece=_PIECE,
    movement=_LANE
    | {
        "parallel": "sub-movements that are played at once",
        "team_leader": "parts that the agent makes up itself",
        "arpeggio": "the same prompt over batches of data",
    },
    lane=_LANE,
    rule={
        "condition": "when it holds",
        "next": "where it leads",
        "requires_user_input": "asks a person first",
        "interactive_only": "only with a person attached",
        "appendix": "what the agent adds to its answer",
        "return": "read by later versions of TAKT",
    },
    report={
        "name": "the file's name",
        "label": "the report's label",
        "format": "what it must look like",
        "order": "words before the format",
        "use_judge": "whether the judge reads it",
    },
    monitor={"cycle": "movements in a row", "threshold": "how many times", "judge": "who decides"},
    judge={
        "persona": "who judges",
        "instruction": "what to judge",
        "instruction_template": "the same; wins over instruction",
        "rules": "where each verdict leads",
        "provider": "which agent judges",
        "model": "which model",
    },
    team_leader={
        "persona": "who leads; wins over the movement's",
        "max_parts": "how many parts are worked on at once, 1 to 3",
        "refill_threshold": "with how many parts waiting more are asked for",
        "timeout_ms": "how long one part may take",
        "part_persona": "who performs a part",
        "part_allowed_tools": "tools that a part may use",
        "part_edit": "whether a part may change files",
        "part_permission_mode": "permission that a part has",
    },
    arpeggio={
        "source": "csv",
        "source_path": "the table, a path beside the piece",
        "batch_size": "how many rows a prompt is played over",
        "concurrency": "how many batches at once",
        "template": "the whole prompt, a path beside the piece",
        "merge": "how the outputs are put together",
        "max_retries": "how often a batch that failed is played again",
        "retry_delay_ms": "how long to wait before that",
        "output_path": "where the whole is written, a path beside the piece",
    },
    merge={
        "strategy": "concat",
        "separator": "what stands between two outputs",
        "inline_js": "read by TAKT alone",
        "file": "read by TAKT alone",
    },
    gate={
        "type": "command",
        "name": "what the gate is called",
        "command": "the command that must succeed",
        "cwd": "where it runs, relative to the working directory",
        "timeout_ms": "how long it may take",
    },
    provider={
        "type": "which agent performs it",
        "model": "which model",
        "network_access": "read by TAKT alone",
        "sandbox": "read by TAKT alone",
    },
    sections={
        "personas": "personas",
        "policies": "policies",
        "knowledge": "knowledge",
        "instructions": "instructions",
        "report_formats": "output-contracts",
        "output_contracts": "output-contracts",
    },
    config={
        "provider": "which agent performs the piece",
        "model": "which model",
        "provider_options": "read by TAKT alone",
        "runtime": "read by TAKT alone",
    },
    config_names=("piece_config", "workflow_config"),
    movements_names=("movements", "steps"),
    initial_names=("initial_movement", "initial_step"),
    limit_names=("max_movements", "max_steps"),
    instruction_names=("instruction_template", "instruction"),
    refused={
        "permission_mode": "write required_permission_mode in the movement, or --permit-edit when you run it"
    },
)
