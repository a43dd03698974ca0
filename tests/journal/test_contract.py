"""What every journal does: one suite over memory and SQLite."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.demands import Message
from cadenza.core.folding import fold_recorded
from cadenza.core.outcomes import Returned
from cadenza.errors import (
    Conflict,
    InputRefused,
    JournalCorrupt,
    LeaseLost,
    NotFound,
    SequenceConflict,
)
from cadenza.ids import text_hash
from cadenza.journal.holders import this_process
from cadenza.journal.store import Commit, Holder, Journal
from tests.journal.by_hand import T0, ByHand, first_demand, folded

MakeJournal = Callable[..., Journal]


def stranger(worker: str = "stranger") -> Holder:
    """A worker on another machine: nobody here can tell whether it lives."""
    return Holder(worker=worker, pid=1, boot="another machine", process_start="1")


# -- runs and events --------------------------------------------------------------------------------------


def test_a_created_run_is_listed_loaded_and_claimable_at_once(journal: Journal) -> None:
    run = ByHand(journal).begin()
    row = journal.run("r1")
    assert (row.status, row.movement, row.iteration, row.wake_at) == ("queued", "plan", 1, 0.0)
    assert (row.created_at, row.updated_at, row.seq, row.actor) == (T0, T0, 3, "user")
    assert fold_recorded(journal.load("r1").tail) == run.state
    assert journal.claim(this_process("w")) is not None


def test_a_second_run_of_the_same_id_is_refused_and_changes_nothing(journal: Journal) -> None:
    ByHand(journal).begin()
    with pytest.raises(Conflict, match="run r1 already"):
        ByHand(journal).begin()
    assert len(journal.events("r1")) == 3


def test_events_come_back_as_they_were_written_in_their_envelopes(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    run.resolve(first_demand(run))
    recorded = journal.events("r1")
    assert [r.seq for r in recorded] == [1, 2, 3, 4]
    assert [r.actor for r in recorded] == ["user"] * 3 + ["engine"]
    assert [r.at for r in recorded] == [T0, T0, T0, T0 + 1]
    assert isinstance(recorded[3].event, ev.DemandResolved)
    assert journal.events("r1", after=2, limit=1) == recorded[2:3]
    assert journal.events("r1", after=4) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda j: j.run("r0"),
        lambda j: j.load("r0"),
        lambda j: j.events("r0"),
        lambda j: j.claim(this_process("w"), run="r0"),
        lambda j: j.append_input("r0", ev.CancelRequested(), at=T0, actor="a"),
        lambda j: j.decide("q0", 1, at=T0, actor="a"),
        lambda j: j.request("q0"),
    ],
)
def test_what_is_not_there_is_named(journal: Journal, call: Callable[[Journal], object]) -> None:
    with pytest.raises(NotFound, match=r"[rq]0"):
        call(journal)


def test_runs_are_listed_newest_first_by_workspace_and_status(journal: Journal) -> None:
    for number in range(5):
        ByHand(journal, f"r{number}", workspace="a" if number % 2 else "b").begin()
    ended = ByHand(journal, "r9", workspace="a").begin().claim()
    ended.commit(ended.ended())
    assert [r.id for r in journal.runs()] == ["r9", "r4", "r3", "r2", "r1", "r0"]
    assert [r.id for r in journal.runs(workspace="a")] == ["r9", "r3", "r1"]
    assert [r.id for r in journal.runs(status=("completed", "held"))] == ["r9"]
    assert [r.id for r in journal.runs(limit=2)] == ["r9", "r4"]
    assert list(journal.runs(limit=0)) == []


def test_a_long_list_of_runs_is_complete_and_may_be_read_while_it_is_written(journal: Journal) -> None:
    for number in range(1203):
        ByHand(journal, f"r{number}").begin()
    listed = []
    for row in journal.runs():
        listed.append(row.id)
        if row.id == "r900":
            ByHand(journal, "rlate").begin()
    assert listed == [f"r{number}" for number in reversed(range(1203))]


def test_runs_are_found_by_the_beginning_of_their_id(journal: Journal) -> None:
    for id in ("rabc", "rabd", "rb%", "rB_", "RABC"):
        ByHand(journal, id).begin()
    assert journal.find_runs("rab") == ["rabd", "rabc"]
    assert journal.find_runs("rb") == ["rb%"]
    assert journal.find_runs("r%") == []
    assert journal.find_runs("") == ["RABC", "rB_", "rb%", "rabd", "rabc"]


def test_a_prefix_finds_twenty_runs_at_most(journal: Journal) -> None:
    for number in range(25):
        ByHand(journal, f"r{number:02}").begin()
    assert journal.find_runs("r") == [f"r{number:02}" for number in range(24, 4, -1)]


def test_an_ended_and_a_held_run_say_why(journal: Journal) -> None:
    ended = ByHand(journal, "r1").begin().claim()
    ended.commit(ended.ended("aborted"))
    held = ByHand(journal, "r2").begin().claim()
    held.commit(ev.RunHeld(reason="interrupted", message="Ctrl-C"))
    row = journal.run("r1")
    assert (row.status, row.reason, row.message, row.wake_at) == ("aborted", "rule", "done", None)
    row = journal.run("r2")
    assert (row.status, row.reason, row.message, row.wake_at) == ("held", "interrupted", "Ctrl-C", None)


def test_tokens_add_up_in_the_listing(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    call = run.call("hi")
    run.commit(call)
    run.commit(run.reply(call.id, "hello"))
    row = journal.run("r1")
    assert (row.input_tokens, row.output_tokens, row.cached_tokens) == (100, 10, 50)


# -- commits ----------------------------------------------------------------------------------------------


def test_a_commit_on_a_stale_sequence_is_refused_and_writes_nothing(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    stale = run.prepare(run.call("hi"))
    run.input(ev.CancelRequested())
    with pytest.raises(SequenceConflict, match="event 4 now, not 3"):
        journal.commit(stale)
    assert [r.event for r in journal.events("r1")][3] == ev.CancelRequested()
    assert journal.messages("c-r1") == []
    with pytest.raises(JournalCorrupt):
        journal.texts([text_hash("hi")])


def test_the_same_outcome_goes_through_after_folding_the_tail(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    demand = first_demand(run)
    run.input(ev.CancelRequested(reason="enough"))
    run.reload().resolve(demand)
    assert journal.run("r1").seq == 5
    assert folded(journal, "r1") == run.state


def test_a_zombie_cannot_write_after_a_new_claim(make_journal: MakeJournal) -> None:
    now = [T0]
    journal = make_journal(clock=lambda: now[0], lease_seconds=30)
    zombie = ByHand(journal, worker="zombie").begin().claim()
    late = zombie.prepare(zombie.call("hi"))
    now[0] += 31
    heir = ByHand(journal, worker="heir").claim().reload()
    assert heir.lease is not None
    assert heir.lease.epoch == 2
    with pytest.raises(LeaseLost, match="worker heir"):
        journal.commit(late)
    assert zombie.lease is not None
    with pytest.raises(LeaseLost):
        journal.renew(zombie.lease)
    journal.release(zombie.lease)
    assert journal.leases()["r1"].worker == "heir"
    heir.commit(heir.call("hi"))


def test_a_lease_that_ran_out_unclaimed_still_writes_and_renews(make_journal: MakeJournal) -> None:
    now = [T0]
    journal = make_journal(clock=lambda: now[0])
    run = ByHand(journal).begin().claim()
    assert run.lease is not None
    now[0] += 1000
    assert journal.leases() == {}
    run.commit(run.call("hi"))
    assert journal.renew(run.lease).expires == now[0] + 30


def test_a_lease_given_back_writes_no_more(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    assert run.lease is not None
    journal.release(run.lease)
    with pytest.raises(LeaseLost, match="given back"):
        run.commit(run.call("hi"))
    with pytest.raises(LeaseLost):
        journal.renew(run.lease)
    assert journal.leases() == {}


def test_nobody_commits_without_a_claim(journal: Journal) -> None:
    run = ByHand(journal).begin()
    empty = Commit(run="r1", epoch=0, after=3, events=(), state=run.state, at=T0)
    with pytest.raises(LeaseLost):
        journal.commit(empty)
    with pytest.raises(NotFound):
        journal.commit(msgspec.structs.replace(empty, run="r0"))


def test_one_refused_commit_of_several_does_not_stop_the_others(journal: Journal) -> None:
    runs = [ByHand(journal, f"r{n}").begin().claim() for n in range(4)]
    commits = [run.prepare(run.call("hi")) for run in runs]
    commits[1] = msgspec.structs.replace(commits[1], after=7)
    commits[2] = msgspec.structs.replace(commits[2], texts={"0" * 40: "lone \ud800"})
    results = journal.commit_many(commits)
    assert [type(result) for result in results] == [type(None), SequenceConflict, InputRefused, type(None)]
    assert [journal.run(f"r{n}").seq for n in range(4)] == [4, 3, 3, 4]
    assert journal.messages("c-r2") == []


def test_commits_of_one_run_in_one_batch_are_written_in_order(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    call = run.call("hi")
    batch = [run.prepare(call), run.prepare(run.reply(call.id, "hello")), run.prepare(run.call("more"))]
    assert journal.commit_many(batch) == [None, None, None]
    assert journal.messages("c-r1") == [
        Message("user", text_hash("hi")),
        Message("assistant", text_hash("hello")),
        Message("user", text_hash("more")),
    ]
    assert folded(journal, "r1") == run.state


@pytest.mark.parametrize("value", ["\ud800", object(), {1: object()}])
def test_a_value_that_is_no_json_is_refused(journal: Journal, value: object) -> None:
    run = ByHand(journal).begin().claim()
    request = run.park()
    with pytest.raises(InputRefused):
        run.decide(request, value)
    assert journal.request(request).status == "open"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        2**64 - 1,
        2**70,
        1.5,
        1e300,
        "",
        "\0 nul",
        "\U0001f3bb 日本",
        [1, [2]],
        {"b": 1, "a": []},
    ],
)
def test_values_come_back_as_they_were(journal: Journal, value: object) -> None:
    run = ByHand(journal).begin().claim()
    request = run.park()
    run.decide(request, value)
    event = journal.events("r1")[-1].event
    assert isinstance(event, ev.RequestDecided)
    assert (event.value, journal.request(request).value) == (value, value)
    assert type(event.value) is type(value)
    assert run.decide(request, value).result == "equal"


# -- snapshots --------------------------------------------------------------------------------------------


def test_a_park_writes_a_snapshot_and_the_tail_is_what_came_after(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    assert journal.load("r1").snapshot is None
    request = run.park()
    loaded = journal.load("r1")
    assert (loaded.snapshot, loaded.tail) == (run.state, ())
    run.decide(request, "left")
    assert [r.event for r in journal.load("r1").tail] == [ev.RequestDecided(id=request, value="left")]


def test_a_long_run_has_a_snapshot_at_most_a_hundred_events_old(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    for _ in range(130):
        demand = first_demand(run)
        run.commit(ev.DemandResolved(id=demand, outcome=Returned([1, "two"])), run.host())
        assert len(journal.load("r1").tail) < 101
    loaded = journal.load("r1")
    assert loaded.snapshot is not None
    assert fold_recorded(loaded.tail, loaded.snapshot) == run.state == folded(journal, "r1")


def test_a_loaded_snapshot_is_the_callers_own(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    run.park()
    loaded = journal.load("r1").snapshot
    assert loaded is not None
    loaded.open.clear()
    loaded.seq = 99
    assert journal.load("r1").snapshot == run.state


# -- inputs -----------------------------------------------------------------------------------------------


def test_an_input_makes_a_parked_run_claimable(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    run.park()
    assert run.lease is not None
    journal.release(run.lease)
    assert journal.claim(this_process("w")) is None
    assert run.input(ev.CancelRequested(reason="enough")) == 7
    row = journal.run("r1")
    assert (row.status, row.reason, row.wake_at, row.updated_at) == ("queued", None, 0.0, run.at)
    assert journal.claim(this_process("w")) is not None


@pytest.mark.parametrize(
    ("event", "takers"),
    [
        (ev.CancelRequested(), {"queued", "parked", "held"}),
        (ev.ResumeRequested(), {"held"}),
        (ev.RetryRequested(), {"ended"}),
        (ev.RequestDecided(id="q", value=1), set[str]()),
    ],
)
@pytest.mark.parametrize("standing", ["queued", "parked", "held", "ended"])
def test_inputs_are_taken_only_where_they_mean_something(
    journal: Journal, standing: str, event: ev.InputEvent, takers: set[str]
) -> None:
    run = ByHand(journal).begin().claim()
    if standing == "parked":
        run.park()
    elif standing == "held":
        run.commit(ev.RunHeld(reason="interrupted"))
    elif standing == "ended":
        run.commit(run.ended())
    before = journal.run("r1")
    if standing in takers:
        run.input(event)
        run.reload()
        assert journal.run("r1").status == run.state.status == "queued"
    else:
        with pytest.raises(Conflict, match="Run r1 "):
            run.input(event)
        assert journal.run("r1") == before
    assert journal.verify() == []


def test_a_retry_is_queued_once_and_a_cancel_may_follow_it(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    run.commit(run.ended("aborted"))
    run.input(ev.RetryRequested())
    with pytest.raises(Conflict, match="to go on already"):
        run.input(ev.RetryRequested())
    run.input(ev.CancelRequested())
    assert journal.verify() == []


def test_an_answer_to_a_held_run_waits_for_its_resume(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    request = run.park()
    run.commit(ev.RunHeld(reason="interrupted", message="Ctrl-C"))
    run.decide(request, "left")
    row = journal.run("r1")
    assert (row.status, row.reason, row.message, row.wake_at) == ("held", "interrupted", "Ctrl-C", None)
    assert journal.verify() == []
    run.input(ev.ResumeRequested())
    assert journal.run("r1").status == "queued"
    assert journal.verify() == []


def test_rows_after_inputs_are_those_that_a_rebuild_writes(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    run.decide(run.park(), "left")
    run.input(ev.CancelRequested())
    before = [journal.run("r1"), *journal.requests(status=("open", "decided", "closed"))]
    assert journal.rebuild() == 1
    assert [journal.run("r1"), *journal.requests(status=("open", "decided", "closed"))] == before
    assert journal.verify() == []


# -- requests ---------------------------------------------------------------------------------------------


def test_an_answer_is_consumed_once(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    request = run.park("which way?")
    row = journal.request(request)
    assert (row.status, row.run, row.movement, row.question) == (
        "open",
        "r1",
        "plan",
        text_hash("which way?"),
    )
    first = run.decide(request, {"way": "left", "n": 1}, actor="ann")
    assert (first.result, first.request.decided_by, first.request.value) == (
        "accepted",
        "ann",
        {"way": "left", "n": 1},
    )
    equal = run.decide(request, {"n": 1, "way": "left"}, actor="bob")
    assert (equal.result, equal.request) == ("equal", first.request)
    for other in ("right", {"way": "left", "n": 1.0}, {"way": "left", "n": True}, None):
        conflict = run.decide(request, other, actor="bob")
        assert (conflict.result, conflict.request.decided_by) == ("conflict", "ann")
    assert sum(isinstance(r.event, ev.RequestDecided) for r in journal.events("r1")) == 1
    assert journal.request(request) == first.request


def test_an_answer_stays_consumed_when_the_run_goes_on_and_ends(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    request = run.park()
    run.decide(request, "left")
    run.reload().take_answer(request, "left").commit(run.visit_ended(), run.ended())
    assert run.decide(request, "left").result == "equal"
    assert run.decide(request, "right").result == "conflict"
    assert journal.verify() == []


@pytest.mark.parametrize("end", ["visit_ended", "run_ended", "restarted", "cancelled", "timeout"])
def test_a_late_answer_is_refused_and_told_why(journal: Journal, end: str) -> None:
    run = ByHand(journal).begin().claim()
    request = run.park()
    if end == "visit_ended":
        run.commit(run.visit_ended())
    elif end == "run_ended":
        run.commit(run.ended("cancelled"))
    elif end == "restarted":
        run.commit(run.visit("plan", cause="restart", attempt=2), run.host())
    elif end == "cancelled":
        run.cancel_demand(request)
    else:
        run.commit(ev.RequestClosed(id=request, reason="timeout"))
    late = run.decide(request, "left")
    assert (late.result, late.request.status, late.request.closed_reason) == ("late", "closed", end)
    assert journal.requests() == []
    assert journal.verify() == []


def test_two_questions_of_one_run_are_answered_apart(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    one, two = run.park("one?"), run.park("two?")
    assert [q.id for q in journal.requests()] == [one, two]
    run.decide(two, "2")
    assert [q.id for q in journal.requests()] == [one]
    assert [q.id for q in journal.requests(status=("decided",))] == [two]
    run.reload().take_answer(two, "2")
    assert journal.request(one).status == "open"


def test_the_inbox_is_oldest_first_over_runs_and_workspaces(journal: Journal) -> None:
    runs = [ByHand(journal, f"r{n}", workspace="ab"[n % 2]).begin().claim() for n in range(4)]
    for run in runs:
        run.at += 10 - int(run.run[1:])
    ids = [run.park() for run in runs]
    assert [q.id for q in journal.requests()] == list(reversed(ids))
    assert [q.id for q in journal.requests(workspace="a")] == [ids[2], ids[0]]
    assert [q.id for q in journal.requests(run="r3")] == [ids[3]]
    assert journal.requests(run="r3", workspace="a") == []
    assert [q.id for q in journal.requests(status=("open", "closed"), workspace="b")] == [ids[3], ids[1]]


def test_two_workspaces_share_one_journal(journal: Journal) -> None:
    one, two = (ByHand(journal, f"r{w}", workspace=w).begin().claim() for w in ("one", "two"))
    one.park("the same question")
    two.park("the same question")
    assert [r.id for r in journal.runs(workspace="one")] == ["rone"]
    assert [q.run for q in journal.requests(workspace="two")] == ["rtwo"]
    assert [r.workspace for r in journal.runs()] == ["two", "one"]


# -- conversations and texts ------------------------------------------------------------------------------


def test_a_conversation_is_the_prompts_and_replies_in_order(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    expected: list[Message] = []
    prefixes: list[tuple[str, list[Message]]] = []
    for number in range(3):
        call = run.call(f"prompt {number}")
        prefixes.append((call.id, list(expected)))
        run.commit(call)
        run.commit(run.reply(call.id, f"reply {number}"))
        expected += [
            Message("user", text_hash(f"prompt {number}")),
            Message("assistant", text_hash(f"reply {number}")),
        ]
    assert journal.messages("c-r1") == expected
    for demand, before in prefixes:
        assert journal.messages("c-r1", before_demand=demand) == before
    assert journal.messages("c-r1", before_demand="unheard of") == expected
    assert journal.messages("no conversation") == []


def test_interleaved_conversations_stay_apart(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    one, two = run.call("one", conversation="c1"), run.call("two", conversation="c2")
    run.commit(one, two)
    run.commit(run.reply(two.id, "second"))
    run.commit(run.reply(one.id, "first"))
    assert journal.messages("c1") == [
        Message("user", text_hash("one")),
        Message("assistant", text_hash("first")),
    ]
    assert journal.messages("c2")[1].text == text_hash("second")


def test_a_text_is_kept_once_and_whole(journal: Journal) -> None:
    body = "line\r\n\0 nul \U0001f3bb " * 1000
    run = ByHand(journal).begin().claim()
    call = run.call(body)
    run.commit(call)
    run.commit(run.reply(call.id, body))
    hash = text_hash(body)
    assert journal.texts([hash, hash, text_hash("the task")]) == {
        hash: body,
        text_hash("the task"): "the task",
    }
    assert journal.texts([]) == {}
    with pytest.raises(JournalCorrupt, match="lacks the text"):
        journal.texts([hash, "f" * 40])


# -- leases -----------------------------------------------------------------------------------------------


def test_the_run_that_has_waited_longest_is_claimed_first(journal: Journal) -> None:
    for number, waited in enumerate((5, 9, 1)):
        run = ByHand(journal, f"r{number}")
        run.at -= waited
        run.begin()
    claimed = [journal.claim(this_process("w")) for _ in range(4)]
    assert [lease and lease.run for lease in claimed] == ["r1", "r0", "r2", None]


def test_a_run_that_waits_for_a_time_is_claimed_then_or_by_name(make_journal: MakeJournal) -> None:
    now = [T0]
    journal = make_journal(clock=lambda: now[0])
    run = ByHand(journal).begin().claim()
    retried = ev.DemandRetried(id=first_demand(run), attempt=1, code="x", message="y", wait=60, until=T0 + 60)
    run.commit(retried)
    assert run.lease is not None
    journal.release(run.lease)
    assert journal.run("r1").wake_at == T0 + 60
    assert journal.claim(this_process("w")) is None
    by_name = journal.claim(this_process("w"), run="r1")
    assert by_name is not None
    journal.release(by_name)
    now[0] += 61
    assert journal.claim(this_process("w")) is not None


def test_a_parked_run_cannot_be_claimed_even_by_name(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    run.park()
    assert run.lease is not None
    journal.release(run.lease)
    assert journal.claim(this_process("w"), run="r1") is None


def test_a_live_holder_keeps_its_lease(journal: Journal) -> None:
    ByHand(journal).begin().claim()
    assert journal.claim(this_process("other")) is None
    assert journal.claim(this_process("other"), run="r1") is None


def test_a_dead_process_of_this_boot_is_taken_over_at_once(journal: Journal) -> None:
    run = ByHand(journal).begin()
    dead = msgspec.structs.replace(this_process("dead"), process_start="1")
    assert journal.claim(dead) is not None
    lease = journal.claim(this_process("heir"))
    assert lease is not None
    assert (lease.epoch, lease.claims, lease.worker) == (2, 2, "heir")
    run.lease = lease
    run.commit(run.call("hi"))


def test_a_stranger_is_given_its_time(make_journal: MakeJournal) -> None:
    now = [T0]
    journal = make_journal(clock=lambda: now[0], lease_seconds=30)
    ByHand(journal).begin()
    lease = journal.claim(stranger())
    assert lease is not None
    now[0] += 29
    assert journal.claim(this_process("w")) is None
    lease = journal.renew(lease)
    assert lease.expires == now[0] + 30
    now[0] += 29
    assert journal.claim(this_process("w")) is None
    now[0] += 1
    assert journal.claim(this_process("w")) is not None


def test_claims_count_losses_and_a_commit_forgets_them(make_journal: MakeJournal) -> None:
    now = [T0]
    journal = make_journal(clock=lambda: now[0], lease_seconds=30)
    run = ByHand(journal).begin()
    for expected in (1, 2, 3):
        lease = journal.claim(stranger())
        assert lease is not None
        assert lease.claims == expected
        now[0] += 31
    run.lease = lease
    run.commit(run.call("hi"))
    now[0] += 31
    lease = journal.claim(stranger())
    assert lease is not None
    assert (lease.claims, lease.epoch) == (1, 4)


def test_a_lease_given_back_without_a_commit_is_no_loss(journal: Journal) -> None:
    ByHand(journal).begin()
    for epoch in range(1, 6):
        lease = journal.claim(this_process("w"))
        assert lease is not None
        assert (lease.claims, lease.epoch) == (1, epoch)
        journal.release(lease)
        journal.release(lease)


def test_leases_say_who_plays_what(journal: Journal) -> None:
    ByHand(journal, "r1").begin()
    ByHand(journal, "r2", worker="ann").begin().claim()
    leases = journal.leases()
    assert {run: lease.worker for run, lease in leases.items()} == {"r2": "ann"}
    assert leases["r2"].expires == pytest.approx(journal.now() + 30, abs=5)


def test_a_lease_whose_process_is_gone_plays_nothing(journal: Journal) -> None:
    ByHand(journal, "r1").begin()
    dead = msgspec.structs.replace(this_process("dead"), pid=2**22 + 1)
    lease = journal.claim(dead)
    assert lease is not None
    assert journal.leases() == {}
    ByHand(journal, "r2").begin()
    far = msgspec.structs.replace(dead, worker="far", boot="another machine")
    assert journal.claim(far, run="r2") is not None
    assert {run: lease.worker for run, lease in journal.leases().items()} == {"r2": "far"}
    journal.renew(lease)  # it is still nobody else's


# -- threads ----------------------------------------------------------------------------------------------


def test_threads_claim_each_run_once_and_lose_no_answer(journal: Journal) -> None:
    runs = [ByHand(journal, f"r{n}").begin().claim() for n in range(12)]
    requests = [run.park() for run in runs]
    for run in runs:
        assert run.lease is not None
        journal.release(run.lease)
    claimed: list[str] = []
    accepted: list[str] = []

    def work(worker: int) -> None:
        for request in requests:
            if journal.decide(request, worker, at=T0, actor=str(worker)).result == "accepted":
                accepted.append(request)
        while (lease := journal.claim(this_process(str(worker)))) is not None:
            claimed.append(lease.run)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accepted) == sorted(requests)
    assert sorted(claimed) == sorted(run.run for run in runs)
    assert journal.verify() == []


def test_a_commit_may_give_its_lease_back(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    commit = run.prepare(ev.Warned(code="x", message="y"))
    journal.commit(msgspec.structs.replace(commit, release=True))
    assert journal.leases() == {}
    late = msgspec.structs.replace(commit, after=commit.state.seq)
    with pytest.raises(LeaseLost):
        journal.commit(late)
    again = journal.claim(stranger())
    assert again is not None
    assert again.claims == 1  # the claim that ended well is not held against the run


def test_several_leases_are_taken_at_once(journal: Journal) -> None:
    for number in range(5):
        ByHand(journal, f"r{number}").begin()
    first = journal.claim_many(stranger(), 3)
    assert [lease.run for lease in first] == ["r0", "r1", "r2"]
    rest = journal.claim_many(stranger("other"), 9)
    assert [lease.run for lease in rest] == ["r3", "r4"]
    assert journal.claim_many(stranger("third"), 9) == []
    assert set(journal.leases()) == {f"r{number}" for number in range(5)}
