-- Every query of the SQLite journal, by name. `?1` is the first parameter.

-- now --
-- The database's clock in epoch seconds.
SELECT (julianday('now') - 2440587.5) * 86400.0;

-- insert_run --
INSERT INTO runs (
    id, workspace, piece, status, reason, message, movement, iteration, wake_at, created_at, updated_at, seq,
    actor, input_tokens, output_tokens, cached_tokens, cost, tool_calls, parent, root, standing, budget
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- rewrite_run --
-- Every derived column of a run anew (rebuild).
UPDATE runs SET
    id = ?1, workspace = ?2, piece = ?3, status = ?4, reason = ?5, message = ?6, movement = ?7, iteration = ?8,
    wake_at = ?9, created_at = ?10, updated_at = ?11, seq = ?12, actor = ?13, input_tokens = ?14,
    output_tokens = ?15, cached_tokens = ?16, cost = ?17, tool_calls = ?18, parent = ?19, root = ?20,
    standing = ?21, budget = ?22
WHERE id = ?1;

-- update_run --
-- What a commit changes in its run's row.
UPDATE runs SET
    seq = ?, updated_at = ?, status = ?, reason = ?, message = ?, movement = ?, iteration = ?, wake_at = ?,
    input_tokens = ?, output_tokens = ?, cached_tokens = ?, cost = ?, tool_calls = ?, standing = ?
WHERE ref = ?;

-- advance_run --
-- The same, only where the run still has the seq and the epoch that the commit follows.
UPDATE runs SET
    seq = ?, updated_at = ?, status = ?, reason = ?, message = ?, movement = ?, iteration = ?, wake_at = ?,
    input_tokens = ?, output_tokens = ?, cached_tokens = ?, cost = ?, tool_calls = ?, standing = ?
WHERE ref = ? AND seq = ?
    AND EXISTS (SELECT 1 FROM leases WHERE run = runs.ref AND epoch = ? AND expires > 0);

-- queue_run --
-- What an input event changes in its run's row: the run is claimable, and nothing else is known yet.
UPDATE runs SET
    seq = ?, updated_at = ?, status = 'queued', reason = NULL, message = NULL, wake_at = 0
WHERE ref = ?;

-- touch_run --
-- What an answer to a held run changes in its row: it is claimable only when it is resumed.
UPDATE runs SET seq = ?, updated_at = ? WHERE ref = ?;

-- run_for_commit --
-- All that decides whether a commit is taken, and what else it has to write.
SELECT r.ref, r.seq, r.snapshot, l.epoch, l.expires, l.worker
FROM runs AS r LEFT JOIN leases AS l ON l.run = r.ref
WHERE r.id = ?;

-- run_for_input --
-- All that decides whether an input event is taken.
SELECT ref, seq, status, standing FROM runs WHERE id = ?;

-- run_ref --
SELECT ref FROM runs WHERE id = ?;

-- all_runs --
SELECT ref, id FROM runs ORDER BY ref;

-- run --
SELECT
    id, workspace, piece, status, reason, message, movement, iteration, wake_at, created_at, updated_at, seq,
    actor, input_tokens, output_tokens, cached_tokens, cost, tool_calls, parent, root
FROM runs WHERE id = ?;

-- tree --
-- The runs of a tree, oldest first: the first run and all that belong to it.
SELECT
    id, workspace, piece, status, reason, message, movement, iteration, wake_at, created_at, updated_at, seq,
    actor, input_tokens, output_tokens, cached_tokens, cost, tool_calls, parent, root
FROM runs WHERE id = ?1 OR (parent IS NOT NULL AND root = ?1) ORDER BY ref;

-- spent --
-- What a tree has spent: tokens, cost, tool calls.
SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost), 0), coalesce(sum(tool_calls), 0)
FROM runs WHERE id = ?1 OR (parent IS NOT NULL AND root = ?1);

-- reserved --
-- What a tree has reserved, but for one demand.
SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0), coalesce(sum(tool_calls), 0)
FROM reservations WHERE root = ?1 AND demand <> ?2;

-- budget --
SELECT budget, created_at FROM runs WHERE id = ?;

-- put_budget --
UPDATE runs SET budget = ? WHERE ref = ?;

-- put_reservation --
INSERT OR REPLACE INTO reservations (demand, root, tokens, cost, tool_calls) VALUES (?, ?, ?, ?, ?);

-- settle --
DELETE FROM reservations WHERE demand = ?;

-- screen --
SELECT generation FROM screens WHERE screen = ?;

-- solve_screen --
INSERT INTO screens (screen, generation) VALUES (?, 1)
ON CONFLICT (screen) DO UPDATE SET generation = generation + 1;

-- put_workspace --
INSERT INTO workspaces (name, path, shared, owner, added_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET path = excluded.path, shared = excluded.shared, owner = excluded.owner;

-- workspaces --
SELECT name, path, shared, owner, added_at FROM workspaces ORDER BY name;

-- run_standing --
SELECT standing, snapshot, budget FROM runs WHERE ref = ?;

-- runs --
-- A page of runs, newest first, before the run `ref` ?1; ?2 is a workspace or NULL, ?3 a JSON array of
-- statuses or NULL, ?4 the size of the page.
SELECT
    id, workspace, piece, status, reason, message, movement, iteration, wake_at, created_at, updated_at, seq,
    actor, input_tokens, output_tokens, cached_tokens, cost, tool_calls, parent, root, ref
FROM runs
WHERE ref < ?1
    AND (?2 IS NULL OR workspace = ?2)
    AND (?3 IS NULL OR status IN (SELECT value FROM json_each(?3)))
ORDER BY ref DESC LIMIT ?4;

-- find_runs --
-- Runs whose id begins with ?1, newest first.
SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY ref DESC LIMIT 20;

-- insert_event --
INSERT INTO events (run, seq, at, actor, payload) VALUES (?, ?, ?, ?, ?);

-- events --
-- A run's events after ?2, at most ?3 of them (-1 for all).
SELECT seq, at, actor, payload FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3;

-- events_backwards --
SELECT seq, payload FROM events WHERE run = ? ORDER BY seq DESC;

-- stray_events --
-- Events of runs that have no row.
SELECT DISTINCT run FROM events WHERE run NOT IN (SELECT ref FROM runs);

-- insert_text --
INSERT OR IGNORE INTO texts (hash, body) VALUES (?, ?);

-- texts --
-- Texts by hash; ?1 is a JSON array of hashes.
SELECT hash, body FROM texts WHERE hash IN (SELECT value FROM json_each(?1));

-- all_texts --
SELECT hash, body FROM texts;

-- insert_message --
INSERT INTO conversations (run, conversation, seq, item, role, text, demand) VALUES (?, ?, ?, ?, ?, ?, ?);

-- messages --
-- All of a conversation's messages, with the run and the seq that brought each.
SELECT c.role, c.text, c.demand, r.id, c.seq
FROM conversations AS c JOIN runs AS r ON r.ref = c.run
WHERE c.conversation = ? ORDER BY c.run, c.seq, c.item;

-- run_messages --
-- A run's messages in one conversation (verify).
SELECT conversation, seq, item, role, text, demand FROM conversations
WHERE conversation = ? AND run = ? ORDER BY seq, item;

-- count_messages --
SELECT count(*) FROM conversations;

-- delete_messages --
DELETE FROM conversations;

-- put_request --
-- A request as it is now, new or known.
INSERT INTO requests (
    id, run, demand, movement, lane, reason, question, status, opened_at, value, decided_at, decided_by,
    closed_reason, schema, sentinel, key, screen, generation, deadline, reminders
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    status = excluded.status, value = excluded.value, decided_at = excluded.decided_at,
    decided_by = excluded.decided_by, closed_reason = excluded.closed_reason, demand = excluded.demand,
    reminders = excluded.reminders;

-- request --
SELECT
    q.id, r.id, q.demand, q.movement, q.lane, q.reason, q.question, q.status, q.opened_at, q.value,
    q.decided_at, q.decided_by, q.closed_reason, q.schema, q.sentinel, q.key, q.screen, q.generation,
    q.deadline, q.reminders
FROM requests AS q JOIN runs AS r ON r.ref = q.run
WHERE q.id = ?;

-- open_requests_of_run --
SELECT
    q.id, r.id, q.demand, q.movement, q.lane, q.reason, q.question, q.status, q.opened_at, q.value,
    q.decided_at, q.decided_by, q.closed_reason, q.schema, q.sentinel, q.key, q.screen, q.generation,
    q.deadline, q.reminders
FROM requests AS q JOIN runs AS r ON r.ref = q.run
WHERE q.run = ? AND q.status = 'open';

-- open_requests_of_screen --
-- Who waits for a screen: ?1, for the reason ?2, oldest first.
SELECT
    q.id, r.id, q.demand, q.movement, q.lane, q.reason, q.question, q.status, q.opened_at, q.value,
    q.decided_at, q.decided_by, q.closed_reason, q.schema, q.sentinel, q.key, q.screen, q.generation,
    q.deadline, q.reminders
FROM requests AS q JOIN runs AS r ON r.ref = q.run
WHERE q.screen = ?1 AND q.status = 'open' AND q.reason = ?2
ORDER BY q.opened_at, q.run, q.rowid;

-- open_requests --
-- The inbox, oldest first; ?1 is a run or NULL, ?2 a workspace or NULL.
SELECT
    q.id, r.id, q.demand, q.movement, q.lane, q.reason, q.question, q.status, q.opened_at, q.value,
    q.decided_at, q.decided_by, q.closed_reason, q.schema, q.sentinel, q.key, q.screen, q.generation,
    q.deadline, q.reminders
FROM requests AS q JOIN runs AS r ON r.ref = q.run
WHERE q.status = 'open' AND (?1 IS NULL OR r.id = ?1) AND (?2 IS NULL OR r.workspace = ?2)
ORDER BY q.opened_at, q.run, q.rowid;

-- requests --
-- Requests of the statuses in the JSON array ?3, oldest first; ?1 is a run or NULL, ?2 a workspace or NULL.
SELECT
    q.id, r.id, q.demand, q.movement, q.lane, q.reason, q.question, q.status, q.opened_at, q.value,
    q.decided_at, q.decided_by, q.closed_reason, q.schema, q.sentinel, q.key, q.screen, q.generation,
    q.deadline, q.reminders
FROM requests AS q JOIN runs AS r ON r.ref = q.run
WHERE q.status IN (SELECT value FROM json_each(?3))
    AND (?1 IS NULL OR r.id = ?1) AND (?2 IS NULL OR r.workspace = ?2)
ORDER BY q.opened_at, q.run, q.rowid;

-- requests_of_run --
-- All of a run's requests in the order of asking (verify).
SELECT
    q.id, r.id, q.demand, q.movement, q.lane, q.reason, q.question, q.status, q.opened_at, q.value,
    q.decided_at, q.decided_by, q.closed_reason, q.schema, q.sentinel, q.key, q.screen, q.generation,
    q.deadline, q.reminders
FROM requests AS q JOIN runs AS r ON r.ref = q.run
WHERE q.run = ? ORDER BY q.rowid;

-- count_requests --
SELECT count(*) FROM requests;

-- delete_requests --
DELETE FROM requests;

-- put_snapshot --
INSERT OR REPLACE INTO snapshots (run, seq, version, state) VALUES (?, ?, ?, ?);

-- mark_snapshot --
UPDATE runs SET snapshot = ? WHERE ref = ?;

-- snapshot --
SELECT version, state FROM snapshots WHERE run = ?;

-- delete_snapshots --
DELETE FROM snapshots;

-- lease --
SELECT epoch, worker, expires, claims FROM leases WHERE run = ?;

-- due_runs --
-- Runs that a worker can play at ?1, the longest waiting first. Leases that run are left out, but for those
-- of other processes of the boot ?2 than ?3 (pid) started at ?4: these may be gone, and are named.
SELECT r.ref, r.id, l.epoch, l.claims, l.expires, l.worker, l.pid, l.boot, l.process_start
FROM runs AS r LEFT JOIN leases AS l ON l.run = r.ref
WHERE r.wake_at IS NOT NULL AND r.wake_at <= ?1
    AND (
        l.epoch IS NULL OR l.expires <= ?1
        OR (l.boot = ?2 AND (l.pid <> ?3 OR l.process_start <> ?4))
    )
ORDER BY max(r.wake_at, r.updated_at);

-- playable_run --
-- The run ?5, if a worker can play it now or later; leases as above.
SELECT r.ref, r.id, l.epoch, l.claims, l.expires, l.worker, l.pid, l.boot, l.process_start
FROM runs AS r LEFT JOIN leases AS l ON l.run = r.ref
WHERE r.id = ?5 AND r.wake_at IS NOT NULL
    AND (
        l.epoch IS NULL OR l.expires <= ?1
        OR (l.boot = ?2 AND (l.pid <> ?3 OR l.process_start <> ?4))
    );

-- put_lease --
INSERT OR REPLACE INTO leases (run, epoch, worker, pid, boot, process_start, expires, claims)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- renew_lease --
UPDATE leases SET expires = ?1 WHERE run = ?2 AND epoch = ?3 AND expires > 0;

-- release_lease --
-- Given back by a worker that lives: this claim was not lost, so it does not count.
UPDATE leases SET expires = 0, claims = max(claims - 1, 0) WHERE run = ?1 AND epoch = ?2 AND expires > 0;

-- forget_claims --
UPDATE leases SET claims = 0 WHERE run = ? AND claims > 0;

-- live_leases --
SELECT r.id, l.epoch, l.expires, l.claims, l.worker, l.pid, l.boot, l.process_start
FROM leases AS l JOIN runs AS r ON r.ref = l.run
WHERE l.expires > 0 AND l.expires > ?1;
