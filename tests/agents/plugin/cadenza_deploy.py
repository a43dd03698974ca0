"""Three tools for agents: one asks a person, one ends the run, one waits for a build."""

from pathlib import Path

from cadenza.tools import Ends, Park, Tool, ToolContext, ToolResult, ToolSpec


def _object(*names: str) -> dict[str, object]:
    properties = {name: {"type": "string"} for name in names}
    return {
        "type": "object",
        "properties": properties,
        "required": list(names),
        "additionalProperties": False,
    }


request_deploy = Tool(
    ToolSpec(
        name="request_deploy",
        description="Ask the person which place to deploy to.",
        parameters=_object("version"),
        effect="read",
        kind="park",
        park=Park(
            sentinel="WAITING_HUMAN_DEPLOY",
            reason="deploy",
            question="Where shall version {version} go?",
            schema={"type": "string", "enum": ["staging", "production"]},
        ),
    )
)

abandon = Tool(
    ToolSpec(
        name="abandon",
        description="Give the release up.",
        parameters=_object("why"),
        kind="terminal",
        ends=Ends(sentinel="ABANDONED", status="aborted", reason="abandoned", result="why"),
    )
)


def _look(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    """Called every so often; nothing waits in here."""
    place = Path(context.workspace, "build.log")
    if not place.exists():
        return ToolResult(text="not yet", again=True)
    return ToolResult(text=place.read_text(encoding="utf-8"))


wait_build = Tool(
    ToolSpec(
        name="wait_build",
        description="Wait until the build has ended, and read its log.",
        parameters=_object(),
        effect="read",
        kind="park",
        park=Park(sentinel="WAITING_BUILD", status="waiting_build", reason="build", every=0.2),
    ),
    _look,
)

TOOLS = [request_deploy, abandon, wait_build]
