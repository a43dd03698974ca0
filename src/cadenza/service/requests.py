"""What people decide: answers to requests, approvals, screens that were solved."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from cadenza.core.arguments import problems_of
from cadenza.core.control import APPROVAL
from cadenza.errors import Conflict, InputRefused, NotFound
from cadenza.journal.store import Decision, RequestRow
from cadenza.service.options import check_text
from cadenza.service.starting import Starting


class Requests(Starting):
    """The inbox and what can be done with it."""

    def answer(self, request: str, value: Any) -> Decision:
        """Answer a request; what became of the answer. It is held against the request's schema first.

        Raises:
            NotFound: no such request (a unique beginning of an id is enough).
            InputRefused: it does not fit what is asked for; no storable text, or an empty one (a blocked
            agent's
                question may be left empty: that ends the run).
        """
        row = self.request(request)
        self._check_answer(row, value)
        return self.journal.decide(row.id, value, at=self._clock(), actor=self.actor)

    def answer_run(self, run: str, value: Any) -> Decision:
        """Answer the one request that a run has open.

        Raises:
            Conflict: it has none, or several: then the answer must name its request.
        """
        rows = self.journal.requests(run=run)
        if len(rows) != 1:
            told = "waits for no answer" if not rows else f"waits for {len(rows)} answers"
            hint = "\n  ".join(f"cadenza answer {row.id} VALUE" for row in rows) or None
            raise Conflict(f"run {run} {told}; name the request", hint=hint)
        return self.answer(rows[0].id, value)

    def decide(self, request: str, *, approved: bool, note: str = "") -> Decision:
        """Approve or decline a request for permission.

        Raises:
            NotFound: no such request.
            InputRefused: it asks for something else than yes or no.
        """
        row = self.request(request)
        if self.schema(row) != APPROVAL:
            hint = f"cadenza answer {row.id} VALUE"
            raise InputRefused(f"request {row.id} asks for more than yes or no", hint=hint)
        value: dict[str, Any] = {"approved": approved}
        if note:
            check_text(note, "the note")
            value["note"] = note
        return self.answer(row.id, value)

    def schema(self, row: RequestRow) -> dict[str, Any] | None:
        """What an answer to a request must fit; None for a text."""
        if row.schema is None:
            return None
        import json

        schema: dict[str, Any] = json.loads(self.journal.texts([row.schema])[row.schema])
        return schema

    def _check_answer(self, row: RequestRow, value: Any) -> None:
        schema = self.schema(row)
        if schema is None:
            if not isinstance(value, str):
                kind = type(value).__name__
                raise InputRefused(f"the answer is a {kind}; this question takes a text", hint="give a text")
            if row.reason != "blocked" or value.strip():
                check_text(value, "the answer")
            return
        problems = problems_of(schema, value)
        if problems:
            hint = f"it must fit {_brief(schema)}"
            raise InputRefused(f"the answer does not fit the question: {'; '.join(problems)}", hint=hint)

    def resolve_screen(self, screen: str) -> list[RequestRow]:
        """Say that a confirmation screen was solved: every run that waits for it goes on; those that did
        wait.

        Raises:
            InputRefused: no name of a screen.
        """
        check_text(screen, "the screen")
        return self.journal.resolve_screen(screen, {"solved": True}, at=self._clock(), actor=self.actor)

    def request(self, request: str) -> RequestRow:
        """A request by its id or a unique beginning of the id of an open one.

        Raises:
            NotFound: none, or several, begin so.
        """
        with suppress(NotFound):
            return self.journal.request(request)
        rows = [row for row in self.journal.requests() if row.id.startswith(request)] if request else []
        if len(rows) == 1:
            return rows[0]
        if len(rows) > 1:
            ids = ", ".join(row.id for row in rows[:5])
            raise NotFound(f"several open requests begin with {request!r}: {ids}", hint="give more of it")
        return self.journal.request(request)


def _brief(schema: dict[str, Any]) -> str:
    import json

    text = json.dumps(schema, ensure_ascii=False)
    return text if len(text) <= 400 else text[:397] + "..."
