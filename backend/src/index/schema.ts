/** Raised whenever the same facts give other rows: then the index is built again beside the old one. */
export const INDEX_VERSION = 3

/**
 * The index: everything here follows from the facts of a log. Integers are keys inside; hashes stand once. `active` is the
 * only thing that conflicts change.
 */
export const SCHEMA = `
-- 'version', 'log' (its id), 'cursor' (seq of the last fact that was applied), 'key' (its kind and key), 'score' (the last one given), 'reorgs' (how many writes
-- changed what earlier ones had derived), and how many there are: 'transactions', active 'names', active 'inscriptions' in their list.
create table meta (name text primary key, value) without rowid;

-- A transaction, or one that is only referred to (seq null). ord: insertion order, seq * 2^20, lowered below that of each child.
-- own: the lowest height of its proofs that count. mined, seen: by itself or a descendant. said: 1 seen, 0 rejected by its own
-- last sighting. mint: tm_names admits outputs of it because of a node that it spends.
create table tx (id integer primary key, txid blob not null unique, seq integer, length integer, ord integer, own integer,
  mined integer, seen integer not null default 0, said integer, active integer not null default 1, mint integer not null default 0);
create index tx_unproven on tx (txid) where seq is not null and own is null;

-- Transaction sid spends output vout of pid; value in satoshis, once pid is known.
create table spend (pid integer not null, vout integer not null, sid integer not null, value integer,
  primary key (pid, vout, sid)) without rowid;
create index spend_sid on spend (sid);

-- ok: it counts, by the best chain or by a verdict. Its root is in the key of its fact.
create table proof (tid integer not null, height integer not null, seq integer not null, ok integer not null,
  primary key (tid, height, seq)) without rowid;
create index proof_height on proof (height);

-- Block headers (headers.ts). best: of the best chain; seq: the place of the first fact that has it.
create table header (height integer not null, header blob not null, seq integer not null, best integer not null,
  primary key (height, header)) without rowid;

-- Registers: the highest n of each subject.
create table verdict (height integer not null, root blob not null, ok integer not null, n integer not null,
  primary key (height, root)) without rowid;
create table blocked (kind text not null, value text not null, blocked integer not null, reason text not null, since integer not null,
  n integer not null, primary key (kind, value)) without rowid;
create table setting (name text primary key, value text, n integer not null) without rowid;
create table sighting (tid integer primary key, n integer not null);

create table node (tid integer not null, vout integer not null, domain text not null, active integer not null,
  primary key (tid, vout)) without rowid;
create index node_domain on node (domain);

-- recency: what newest lists are sorted by; tkey: the first 6 bytes of the txid, so that rows of one block sort as outpoints do.
create table name (tid integer not null, vout integer not null, name text not null, active integer not null,
  recency integer not null, tkey integer not null, primary key (tid, vout)) without rowid;
create index name_name on name (name);
create index name_recency on name (recency, tkey, tid) where active = 1;

-- An output that tm_ordinals admits, or a carrier: a coin before an ordinal, part of no answer. ptid, pvout: the coin that it
-- received; unresolved: unknown, because a value is. lin (oid of the first output), step: its place, once every coin before it is
-- known; run: until then, those that it is linked to; origin: the step of the first content; latest: the output with the latest content at or before it; latestparent: with
-- the latest parent that counts; lastmap, mprev: the chain of MAP; snap: the latest snapshot, since: MAP bytes after it.
-- coff: where the body is in the raw transaction; null: in the fact of its hash. parent: as claimed, txid and vout, 36 bytes;
-- pok: it counts. recency: set if it is in the list of inscriptions.
create table out (oid integer primary key, tid integer not null, vout integer not null, ptid integer, pvout integer,
  sats integer not null, carrier integer not null, unresolved integer not null, active integer not null,
  run integer, lin integer, step integer, origin integer, latest integer, latestparent integer, lastmap integer, mprev integer, snap integer,
  since integer, sha blob, ctype blob, clen integer, coff integer, owner blob, parent blob, pok integer not null default 0,
  mlen integer, map blob, recency integer, tkey integer);
create unique index out_outpoint on out (tid, vout);
create index out_from on out (ptid, pvout) where ptid is not null;
create index out_run on out (run) where run is not null;
create index out_step on out (lin, step) where lin is not null;
create index out_sha on out (sha) where sha is not null;
create index out_recency on out (recency, tkey, tid, vout) where recency is not null and active = 1;
create index out_claim on out (parent) where parent is not null;

-- Outputs without number that are linked to each other. head: the first one (an oid); size: how many they are.
create table run (id integer primary key, head integer not null, size integer not null);

create table snap (oid integer primary key, bytes blob not null);

-- What an ordinal at its active tip is found by. okey, vout: those of the first output of the lineage, so that lists sort as outpoints.
-- Without number: of the first one that is known; then lin is the output at the tip, below 0.
create table attribute (id integer primary key, hash blob not null unique);
create table found (attribute integer not null, okey integer not null, vout integer not null, lin integer not null,
  primary key (attribute, okey, vout, lin)) without rowid;
create index found_lin on found (lin);
create index found_run on found (okey, vout) where lin < 0;

-- What topics hold; topic: a number for those that every host has (admissions.ts), else its name. score: above the first one of the log.
create table admission (tid integer not null, vout integer not null, topic numeric not null, score integer not null,
  primary key (tid, vout, topic)) without rowid;
create unique index admission_score on admission (topic, score);

-- Where the history of an ordinal has a hole: an output without number whose coin nobody has (vout), or a transaction
-- that spends an ordinal and of which it is not known where that goes (vout 4294967295).
create table missing (tid integer not null, vout integer not null, seq integer not null, primary key (tid, vout)) without rowid;
create index missing_seq on missing (seq);

-- What answers depend on and a write changed (dependencies.ts), a row a write: a list in JSON, or '*' for everything; the last 1,000.
create table changes (id integer primary key, keys text not null);
`
