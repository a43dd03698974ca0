-- The first schema of a journal. Released schemas never change: a later one is a file of its own.

-- create_runs --
-- One row a run. `ref` stands for the run in the other tables; `id` and `ref` are facts, every other
-- column follows from the events. `standing` is `held`, `ended` or NULL, whatever inputs are queued;
-- `snapshot` is the seq of the run's snapshot.
CREATE TABLE runs (
    ref INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL,
    piece TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    message TEXT,
    movement TEXT,
    iteration INTEGER NOT NULL,
    wake_at REAL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    seq INTEGER NOT NULL,
    actor TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    standing TEXT,
    snapshot INTEGER NOT NULL DEFAULT 0
);

-- create_runs_due --
-- Since when each run that a worker can play has been waiting; parked runs are not in it.
CREATE INDEX runs_due ON runs (max(wake_at, updated_at), wake_at) WHERE wake_at IS NOT NULL;

-- create_events --
-- The truth. `payload` is the event as canonical JSON, which begins with {"type":"…", so that `type` needs
-- no parsing: SQLite works it out at every insert. `at` is in epoch seconds.
CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs (ref),
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    payload TEXT NOT NULL,
    type TEXT GENERATED ALWAYS AS (substr(payload, 10, instr(substr(payload, 10), '"') - 1)) VIRTUAL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;

-- create_texts --
-- Every long text once, by the first 160 bits of its SHA-256.
CREATE TABLE texts (
    hash TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL
);

-- create_snapshots --
-- The last snapshot of each run's state, as JSON in format `version`.
CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY REFERENCES runs (ref),
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL
);

-- create_requests --
-- Questions and what became of them; `value` is JSON.
CREATE TABLE requests (
    id TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL REFERENCES runs (ref),
    demand TEXT NOT NULL,
    movement TEXT NOT NULL,
    lane TEXT NOT NULL,
    reason TEXT NOT NULL,
    question TEXT NOT NULL,
    status TEXT NOT NULL,
    opened_at REAL NOT NULL,
    value TEXT,
    decided_at REAL,
    decided_by TEXT,
    closed_reason TEXT
);

-- create_requests_run --
CREATE INDEX requests_run ON requests (run);

-- create_requests_open --
CREATE INDEX requests_open ON requests (opened_at) WHERE status = 'open';

-- create_conversations --
-- The messages of each conversation in the order (run, seq, item): `seq` is the event that brought the
-- message, `item` its place in it, `demand` the model call that it belongs to.
CREATE TABLE conversations (
    conversation TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (ref),
    seq INTEGER NOT NULL,
    item INTEGER NOT NULL,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    demand TEXT NOT NULL,
    PRIMARY KEY (conversation, run, seq, item)
) WITHOUT ROWID;

-- create_leases --
-- Who may write a run's events, until when (epoch seconds of the database's clock; 0 is given back).
-- A row stays for ever, so that epochs only grow. `claims` counts claims since the last commit.
CREATE TABLE leases (
    run INTEGER PRIMARY KEY REFERENCES runs (ref),
    epoch INTEGER NOT NULL,
    worker TEXT NOT NULL,
    pid INTEGER NOT NULL,
    boot TEXT NOT NULL,
    process_start TEXT NOT NULL,
    expires REAL NOT NULL,
    claims INTEGER NOT NULL
);

-- create_leases_live --
CREATE INDEX leases_live ON leases (expires) WHERE expires > 0;
