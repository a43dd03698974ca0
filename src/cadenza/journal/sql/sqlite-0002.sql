-- The second schema: trees of runs, requests with deadlines and a ledger, screens, workspaces, budgets.

-- add_parent --
ALTER TABLE runs ADD COLUMN parent TEXT;

-- add_root --
-- The first run of the tree; its own id where it is nobody's child.
ALTER TABLE runs ADD COLUMN root TEXT;

-- fill_root --
UPDATE runs SET root = id;

-- add_cost --
ALTER TABLE runs ADD COLUMN cost REAL NOT NULL DEFAULT 0;

-- add_tool_calls --
ALTER TABLE runs ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;

-- fill_tool_calls --
UPDATE runs SET tool_calls = (
    SELECT count(*) FROM events AS done
    WHERE done.run = runs.ref AND done.type = 'demand.resolved'
        AND json_extract(done.payload, '$.outcome.is') <> 'cancelled' AND json_extract(done.payload, '$.id') IN (
        SELECT json_extract(asked.payload, '$.id') FROM events AS asked
        WHERE asked.run = runs.ref AND asked.type = 'demand.issued'
            AND json_extract(asked.payload, '$.demand.do') = 'tool'
    )
);

-- add_budget --
-- What the tree of a first run may spend, as JSON; NULL where nothing limits it.
ALTER TABLE runs ADD COLUMN budget TEXT;

-- create_runs_parent --
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

-- create_runs_root --
CREATE INDEX runs_root ON runs (root) WHERE parent IS NOT NULL;

-- add_schema --
ALTER TABLE requests ADD COLUMN schema TEXT;

-- add_sentinel --
ALTER TABLE requests ADD COLUMN sentinel TEXT NOT NULL DEFAULT '';

-- add_key --
ALTER TABLE requests ADD COLUMN key TEXT;

-- add_screen --
ALTER TABLE requests ADD COLUMN screen TEXT;

-- add_generation --
ALTER TABLE requests ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

-- add_deadline --
-- In epoch seconds; 0 for none.
ALTER TABLE requests ADD COLUMN deadline REAL NOT NULL DEFAULT 0;

-- add_reminders --
-- How often it was said that nobody has answered.
ALTER TABLE requests ADD COLUMN reminders INTEGER NOT NULL DEFAULT 0;

-- create_requests_screen --
CREATE INDEX requests_screen ON requests (screen) WHERE status = 'open' AND screen IS NOT NULL;

-- create_screens --
-- How often each screen has been solved.
CREATE TABLE screens (
    screen TEXT PRIMARY KEY,
    generation INTEGER NOT NULL
) WITHOUT ROWID;

-- create_workspaces --
CREATE TABLE workspaces (
    name TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    shared INTEGER NOT NULL,
    owner TEXT NOT NULL,
    added_at REAL NOT NULL
) WITHOUT ROWID;

-- create_reservations --
-- What demands that are being met may spend of their tree's budget, at most.
CREATE TABLE reservations (
    demand TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    cost REAL NOT NULL,
    tool_calls INTEGER NOT NULL
) WITHOUT ROWID;

-- create_reservations_root --
CREATE INDEX reservations_root ON reservations (root);
