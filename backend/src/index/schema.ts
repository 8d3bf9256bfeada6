import type { Sql } from '../facts/connection.js'
import type { RegisterValue } from '../facts/registers.js'
import { UNPROVEN } from '../graph/listings.js'
import { PROFILES } from '../protocol/profile.js'

/** Raised whenever the same facts give other rows: the index is then rebuilt beside the old one. */
export const INDEX_VERSION = 9

/** Steps of blocks in which names are counted by height: a chart uses the smallest step that gives few enough counts. */
export const TALLY_STEPS = [10, 100, 1000, 10_000] as const

const DIRECTORIES = new Set(Object.values(PROFILES).flatMap((each) => each.directoryContentTypes))

/** The kind that an inscription is counted as, by its type in a column: there may be any number of types. */
const kindOf = (type: string): string => `case
  when ${type} in (${[...DIRECTORIES].map((each) => `'${each}'`)}) then 'directory'
  when ${type} like 'image/%' then 'image' when ${type} like 'audio/%' then 'audio' when ${type} like 'video/%' then 'video'
  when ${type} like 'text/html%' or ${type} like 'application/xhtml+xml%' then 'page'
  when ${type} like 'application/json%' or ${type} like '%+json%' then 'json'
  when ${type} like 'text/%' then 'text' else 'other' end`

type TriggerRow = 'old' | 'new'

/** Counts a name at each of its prefixes. */
const tallyTree = (row: TriggerRow, n: string): string => `
  insert into tally (what, key, n) select 'tree', substr(${row}.name, 1, length), ${n} from (
    with recursive prefix (length) as (select 1 union all select length + 1 from prefix where length < length(${row}.name))
    select length from prefix) where true on conflict do update set n = n + excluded.n;`

/** Counts a proven name by its height. */
const tallyHeight = (row: TriggerRow, n: string): string => `
  insert into tally (what, key, n) select column1, ${row}.recency / column1, ${n}
    from (values ${TALLY_STEPS.map((step) => `(${step})`)}) where ${row}.recency < ${UNPROVEN}
    on conflict do update set n = n + excluded.n;`

const isListed = (row: TriggerRow): string => `(${row}.active = 1 and ${row}.recency is not null)`

/** Counts an inscription by its kind and by how many digits its length in bytes has. */
const tallyContent = (row: TriggerRow, n: string): string => `
  insert into tally (what, key, n, bytes)
    values ('content', ${kindOf(`cast(${row}.ctype as text)`)} || ' ' || length(${row}.clen), ${n}, ${n} * ${row}.clen)
    on conflict do update set n = n + excluded.n, bytes = bytes + excluded.bytes;`

/** Keep `tally` up to date, whatever statement changes the tables that it counts. */
const TRIGGERS = `
create trigger name_added after insert on name when new.active = 1
  begin ${tallyTree('new', '1')} ${tallyHeight('new', '1')} end;
create trigger name_removed after delete on name when old.active = 1
  begin ${tallyTree('old', '-1')} ${tallyHeight('old', '-1')} end;
create trigger name_decided after update of active on name when new.active <> old.active
  begin ${tallyTree('new', 'new.active - old.active')} ${tallyHeight('new', 'new.active - old.active')} end;
create trigger name_moved after update of recency on name when new.active = 1
  begin ${tallyHeight('old', '-1')} ${tallyHeight('new', '1')} end;
create trigger out_added after insert on out when ${isListed('new')} begin ${tallyContent('new', '1')} end;
create trigger out_removed after delete on out when ${isListed('old')} begin ${tallyContent('old', '-1')} end;
create trigger out_decided after update of active, recency on out when ${isListed('new')} <> ${isListed('old')}
  begin ${tallyContent('new', `(${isListed('new')} - ${isListed('old')})`)} end;
`

/**
 * The index: everything follows from the facts of a log. Keys are integers; each hash is stored once. Conflicts change only
 * `active`.
 */
export const SCHEMA = `
-- 'log' (its id), and the 'rules' that it is derived by.
create table meta (name text primary key, value) without rowid;

-- One row (id 1), written by each commit. cursor: seq of the last fact that was applied; key: its kind and key; score: the last one given; reorgs: how many
-- writes changed what earlier ones had derived; blocks: how often something was blocked or unblocked; and how many there are: transactions, active
-- names, active inscriptions in their list.
create table counts (id integer primary key, cursor integer not null, key text not null, score integer not null, reorgs integer not null, blocks integer not null,
  transactions integer not null, names integer not null, inscriptions integer not null);
insert into counts values (1, 0, '', 0, 0, 0, 0, 0, 0);

-- A transaction, or one that is only referred to (seq null). ord: insertion order, seq * 2^20, lowered below that of each child.
-- own: the lowest height of its proofs that count. mined, seen: by itself or a descendant. said: 1 seen, 0 rejected by its own
-- last sighting; sighting: the number of that. mint: tm_names admits outputs of it because of a node that it spends.
create table tx (id integer primary key, txid blob not null unique, seq integer, length integer, ord integer, own integer,
  mined integer, seen integer not null default 0, said integer, sighting integer, active integer not null default 1, mint integer not null default 0);
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
-- Where headers are found by their hashes: of each, the first 4 bytes in internal order.
create table header_hash (start blob not null, height integer not null, primary key (start, height)) without rowid;

-- Registers (facts/registers.ts), except sightings: of each subject, the one with the highest n; value: in JSON.
create table register (subject text primary key, n integer not null, value text not null) without rowid;

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
create index out_claim on out (parent, pok, active, recency, tkey, tid, vout) where parent is not null;

-- Outputs without number that are linked to each other. head: the first one (an oid); size: how many they are.
create table run (id integer primary key, head integer not null, size integer not null);

create table snap (oid integer primary key, bytes blob not null);

-- What an ordinal at its active tip is found by. attribute: the first 16 bytes of its hash. okey, vout: those of the first output of the
-- lineage, so that lists sort as outpoints. Without number: of the first one that is known; then lin is the output at the tip, below 0.
create table found (attribute blob not null, okey integer not null, vout integer not null, lin integer not null,
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

-- How many of those that count there are, for charts. what: 'tree', key a prefix: names that begin with it; a number of blocks, key a
-- height divided by it: names proven there; 'content', key a kind and the digits of a length: inscriptions in their list.
create table tally (what not null, key not null, n integer not null, bytes integer not null default 0,
  primary key (what, key)) without rowid;
${TRIGGERS}`

/** The value of a register in the table `register`. */
export function registerIn(sql: Sql, subject: string): RegisterValue | undefined {
  const row = sql.get('select value from register where subject = ?', subject)
  return row && (JSON.parse(row.value) as RegisterValue)
}

export function hasRegister(sql: Sql, prefix: string): boolean {
  const found = 'select 1 as one from register where subject between ? and ? limit 1'
  return sql.get(found, prefix, `${prefix}~`) !== undefined
}
