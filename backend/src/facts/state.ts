import type { Block, HeldSubmission, Proof } from '../graph/records.js'
import { fromHex, toHex } from '../protocol/bytes.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { Row, Sql } from './connection.js'
import { proofOf } from './log.js'

/** Mutable tables beside the log, in its file. Nothing is derived from them; all but pending and held transactions may be lost. */
export const STATE_SCHEMA = `
-- Transactions that nothing admitted depends on, in the order in which they came. waiting: it does not count. raised: it or a
-- descendant may be proven or seen, or a descendant came before it; otherwise it ranks by its place alone. mint: it lost as a mint.
-- client: who submitted it, if it was refused. proven: it has proofs.
create table if not exists pending (arrived integer primary key autoincrement, txid blob not null unique, bytes integer not null,
  waiting integer not null, raised integer not null, mint integer not null, proven integer not null, client text, raw blob not null);
create index if not exists pending_client on pending (client, arrived, bytes) where waiting = 1;
create index if not exists pending_first on pending (waiting, proven, arrived);
-- Their proofs, in the order in which they first came, as in the log: the chain may come back to any of the blocks.
create table if not exists pending_proof (n integer primary key, txid blob not null, height integer not null, root blob not null,
  merkle_path blob not null, unique (txid, height, root));
create index if not exists pending_proof_height on pending_proof (height);
-- What pending transactions spend, those that count apart: any number of others may spend the same coin.
create table if not exists pending_spend (txid blob not null, vout integer not null, waiting integer not null,
  spender blob not null, primary key (txid, vout, waiting, spender)) without rowid;
create index if not exists pending_spender on pending_spend (spender);
-- Submissions that no block can hold yet.
create table if not exists held (txid blob primary key, lock_height integer not null, lock_time integer not null,
  beef blob not null) without rowid;
create index if not exists held_lock on held (lock_height, lock_time);
-- How far a host has come with something.
create table if not exists state (name text primary key, value text not null) without rowid;
-- Attempts to find what is missing in front of an ordinal. Without a row: none yet.
create table if not exists ancestor (txid blob not null, vout integer not null, hole integer not null, due integer not null,
  place integer not null, tries integer not null, transactions integer not null, bytes integer not null,
  primary key (txid, vout)) without rowid;
create index if not exists ancestor_due on ancestor (hole, due, place);
`

/** State about the host's own disk, and about what it verified itself. On a shared log, all other state is shared. */
export const OWN_STATE = ['space probed', 'checked_tip'] as const

/** The outcome of attempts to find the missing ancestors of an ordinal (`AncestorEntry`). */
export interface AncestorTry {
  hole: boolean
  tries: number
  /** When to try again, in milliseconds since 1970; `place` orders attempts that are due at the same time. */
  due: number
  place: number
  /** Fetched so far. */
  transactions: number
  bytes: number
}

/** How many attempts are checked at a time: more than one write adds, so stale ones are deleted faster than new ones come. */
const LOOKED_AT = 20

/** Transactions per query. Each number of them is a statement of its own. */
const ASKED_AT_ONCE = 8

/** Deletes all pending and held transactions. A `Pending` of the file must be {@link Pending.restore restored} to count again. */
export function clearPending(sql: Sql): void {
  for (const table of ['pending', 'pending_proof', 'pending_spend', 'held']) sql.run(`delete from ${table}`)
}

/** A host's notes about itself and its work. */
export class State {
  constructor(private readonly sql: Sql) {}

  set(name: string, value: string): void {
    this.sql.run(
      'insert into state values (?, ?) on conflict do update set value = excluded.value',
      name,
      value,
    )
  }

  /** Over the limit, deletes those that would wait longest. */
  hold({ txid, lock, beef }: HeldSubmission, { maxCount }: { maxCount: number }): void {
    this.sql.run(
      'insert into held values (?, ?, ?, ?) on conflict do nothing',
      ...[fromHex(txid), lock.height, lock.time, beef],
    )
    const over = Number(this.sql.get('select count(*) as count from held')?.count) - maxCount
    if (over <= 0) return
    const longest = 'select txid from held order by lock_time desc, lock_height desc, txid limit ?'
    this.sql.run(`delete from held where txid in (${longest})`, over)
  }

  release(txid: string): void {
    this.sql.run('delete from held where txid = ?', fromHex(txid))
  }

  postpone(outpoints: readonly Outpoint[], attempt: AncestorTry): void {
    const { hole, due, place, tries, transactions, bytes } = attempt
    for (const { txid, vout } of outpoints)
      this.sql.run(
        'insert or replace into ancestor values (?, ?, ?, ?, ?, ?, ?, ?)',
        ...[fromHex(txid), vout, Number(hole), due, place, tries, transactions, bytes],
      )
  }

  /**
   * Deletes attempts for ancestors that are no longer missing. It checks those that have been due longest: attempts that are
   * still needed are made when due, and so move behind them.
   */
  forgetFound(isMissing: (outpoint: Outpoint) => boolean): void {
    for (const hole of [0, 1])
      for (const { txid, vout } of this.sql.all(
        'select txid, vout from ancestor where hole = ? order by due, place limit ?',
        ...[hole, LOOKED_AT],
      ))
        if (!isMissing({ txid: toHex(txid), vout }))
          this.sql.run('delete from ancestor where txid = ? and vout = ?', txid, vout)
  }
}

/** A pending transaction without its bytes. */
export interface PendingOutline {
  txid: string
  /** Its place in the order in which they came. */
  arrived: number
  /** Whether it does not count: it lost a conflict, or an ancestor did, or the network rejected it. */
  isWaiting: boolean
  /** Whether something other than its place may rank it: a proof or sighting of it or a descendant, or an earlier descendant. */
  isRaised: boolean
  isProven: boolean
  /** Whether it lost as a mint: only mints conflict over a node. */
  isMint: boolean
}

/** A pending transaction with its proofs, the latest last. */
export interface PendingTransaction extends PendingOutline {
  raw: Uint8Array
  proofs: readonly Proof[]
}

/** How a transaction becomes pending. */
interface NewPending extends Partial<Pick<PendingOutline, 'isRaised' | 'isMint'>> {
  isWaiting: boolean
  /** The client that submitted it, if it lost. */
  client?: string | undefined
}

/** A number of pending transactions, and their size. */
export interface PendingTotal {
  transactions: number
  bytes: number
}

type Totals = Record<'pending' | 'waiting', PendingTotal> | undefined

/** Pending transactions, and what they spend. The totals are kept in memory: there is one writer. */
export class Pending {
  private totals: Totals

  /** @param onChange Called when a transaction is added, changed or deleted. */
  constructor(
    private readonly sql: Sql,
    private readonly onChange = (): void => {},
  ) {}

  /** @param kind Those that lost a conflict are counted separately, as `waiting`. */
  total(kind: 'pending' | 'waiting'): PendingTotal {
    this.totals ??= { pending: this.sum(0), waiting: this.sum(1) }
    return this.totals[kind]
  }

  get isEmpty(): boolean {
    return this.total('pending').transactions + this.total('waiting').transactions === 0
  }

  /** The totals in memory, to restore after a rollback. */
  mark(): Totals {
    return this.totals && { pending: { ...this.totals.pending }, waiting: { ...this.totals.waiting } }
  }

  restore(totals: Totals): void {
    this.totals = totals
  }

  has(txid: string): boolean {
    return !this.isEmpty && this.sql.get('select 1 from pending where txid = ?', fromHex(txid)) !== undefined
  }

  get(txid: string): PendingTransaction | undefined {
    const row = this.isEmpty ? undefined : this.sql.get('select * from pending where txid = ?', fromHex(txid))
    return row && { ...outlineOf(row), raw: row.raw, proofs: proofsOf(this.sql, row.txid) }
  }

  /** Adds a transaction in the last place. */
  add(
    { txid, raw, proofs = [] }: Pick<PendingTransaction, 'txid' | 'raw'> & { proofs?: readonly Proof[] },
    spends: readonly Outpoint[],
    { isWaiting, client, isRaised = false, isMint = false }: NewPending,
  ): void {
    const key = fromHex(txid)
    const added = this.sql.run(
      `insert into pending (txid, raw, bytes, client, waiting, raised, mint, proven)
        values (?, ?, ?, ?, ?, 0, ?, 0) on conflict do nothing`,
      ...[key, raw, raw.length, client ?? null, Number(isWaiting), Number(isMint)],
    )
    if (added === 0) return
    for (const { txid: spent, vout } of spends)
      this.sql.run(
        'insert into pending_spend values (?, ?, ?, ?) on conflict do nothing',
        ...[fromHex(spent), vout, Number(isWaiting), key],
      )
    this.count(isWaiting, { transactions: 1, bytes: raw.length })
    if (isRaised) this.raise(txid)
    for (const proof of proofs) this.prove(txid, proof)
  }

  /** Marks a transaction and its pending ancestors: from now on, more than their places may rank them. */
  raise(txid: string): void {
    this.sql.run(
      `with recursive up (txid) as (values (?) union select spend.txid from up
          cross join pending_spend spend on spend.spender = up.txid cross join pending on pending.txid = spend.txid where raised = 0)
        update pending set raised = 1 where txid in up`,
      fromHex(txid),
    )
  }

  /** Adds a proof as the latest one; ignored if it is there, as in the log, or if the transaction is not pending. */
  prove(txid: string, { height, root, merklePath }: Proof): void {
    this.sql.run(
      `insert or ignore into pending_proof (txid, height, root, merkle_path)
        select txid, ?, ?, ? from pending where txid = ?`,
      ...[height, fromHex(root), merklePath, fromHex(txid)],
    )
    this.noteProofs(fromHex(txid))
    this.raise(txid)
  }

  /** @param proofs All its proofs, the latest last. */
  replaceProofs(txid: string, proofs: readonly Proof[]): void {
    this.sql.run('delete from pending_proof where txid = ?', fromHex(txid))
    this.noteProofs(fromHex(txid))
    for (const proof of proofs) this.prove(txid, proof)
  }

  /** Deletes the proofs of a block. Returns the transactions that had one. */
  disprove({ height, root }: Block): string[] {
    const block = [height, fromHex(root)] as const
    const rows = this.sql.all('select txid from pending_proof where height = ? and root = ?', ...block)
    this.sql.run('delete from pending_proof where height = ? and root = ?', ...block)
    for (const { txid } of rows) this.noteProofs(txid)
    return rows.map(({ txid }) => toHex(txid))
  }

  /** The transactions with a proof in a block of these heights. */
  provenIn({ from, to }: { from: number; to: number }): string[] {
    if (this.isEmpty) return []
    const rows = this.sql.all(
      'select distinct txid from pending_proof where height between ? and ?',
      from,
      to,
    )
    return rows.map(({ txid }) => toHex(txid))
  }

  private noteProofs(key: Uint8Array): void {
    this.sql.run(
      'update pending set proven = exists (select 1 from pending_proof each where each.txid = pending.txid) where txid = ?',
      key,
    )
    this.onChange()
  }

  /** Sets whether a transaction waits. @param isMint Whether it lost as a mint. */
  setWaiting(txid: string, isWaiting: boolean, { isMint = false }: { isMint?: boolean } = {}): void {
    const row = this.sql.get('select waiting, bytes from pending where txid = ?', fromHex(txid))
    if (row === undefined) return
    if (isMint) this.sql.run('update pending set mint = 1 where txid = ?', fromHex(txid))
    if (Boolean(row.waiting) === isWaiting) return
    for (const [table, owner] of [
      ['pending', 'txid'],
      ['pending_spend', 'spender'],
    ])
      this.sql.run(`update ${table} set waiting = ? where ${owner} = ?`, Number(isWaiting), fromHex(txid))
    this.count(!isWaiting, { transactions: -1, bytes: -row.bytes })
    this.count(isWaiting, { transactions: 1, bytes: row.bytes })
  }

  delete(txid: string): void {
    const key = fromHex(txid)
    const row = this.sql.get('select waiting, bytes from pending where txid = ?', key)
    if (row === undefined) return
    this.sql.run('delete from pending where txid = ?', key)
    this.sql.run('delete from pending_proof where txid = ?', key)
    this.sql.run('delete from pending_spend where spender = ?', key)
    this.count(Boolean(row.waiting), { transactions: -1, bytes: -row.bytes })
  }

  /** The pending transactions that spend an outpoint: those that count, or those that wait. */
  spendersOf({ txid, vout }: Outpoint, { isWaiting }: { isWaiting: boolean }): string[] {
    if (this.total(isWaiting ? 'waiting' : 'pending').transactions === 0) return []
    const rows = this.sql.all(
      'select spender from pending_spend where txid = ? and vout = ? and waiting = ?',
      ...[fromHex(txid), vout, Number(isWaiting)],
    )
    return rows.map(({ spender }) => toHex(spender))
  }

  /** The pending transactions that spend outputs of a transaction. */
  childrenOf(txid: string): string[] {
    return [...new Set(this.spendsFrom(txid).map(({ spender }) => spender))]
  }

  /** The pending spends of the outputs of a transaction. */
  spendsFrom(txid: string): { vout: number; spender: string }[] {
    if (this.isEmpty) return []
    const rows = this.sql.all('select vout, spender from pending_spend where txid = ?', fromHex(txid))
    return rows.map(({ vout, spender }) => ({ vout, spender: toHex(spender) }))
  }

  /** Whether any of these transactions is pending or has a pending spender. */
  hasAround(txids: readonly string[]): boolean {
    for (let at = 0; !this.isEmpty && at < txids.length; at += ASKED_AT_ONCE) {
      const keys = txids.slice(at, at + ASKED_AT_ONCE).map(fromHex)
      // Not `in`: SQLite would make a table of the list.
      let sql = ''
      for (const key of keys.keys())
        sql += `${sql && ' union all '}select 1 as one from pending where txid = ?${key + 1}
          union all select 1 from pending_spend where txid = ?${key + 1}`
      const found = this.sql.get(`${sql} limit 1`, ...keys)
      if (found !== undefined) return true
    }
    return false
  }

  /** The waiting transactions, in the order in which they came. */
  waiting(): string[] {
    const rows = this.sql.all('select txid from pending where waiting = 1 order by arrived')
    return rows.map(({ txid }) => toHex(txid))
  }

  /** The waiting transactions that spend a coin of a pending one. */
  conflictsOf(txid: string): string[] {
    const rows = this.sql.all(
      `select distinct other.spender from pending_spend own join pending_spend other
        on other.txid = own.txid and other.vout = own.vout and other.waiting = 1 and other.spender <> own.spender
        where own.spender = ?`,
      fromHex(txid),
    )
    return rows.map(({ spender }) => toHex(spender))
  }

  /** The transactions, pending or not, that a pending one spends from. */
  parentsOf(txid: string): string[] {
    const rows = this.sql.all('select distinct txid from pending_spend where spender = ?', fromHex(txid))
    return rows.map((row) => toHex(row.txid))
  }

  spendsOf(txid: string): Outpoint[] {
    const rows = this.sql.all('select txid, vout from pending_spend where spender = ?', fromHex(txid))
    return rows.map((row) => ({ txid: toHex(row.txid), vout: row.vout }))
  }

  /** A transaction and its pending ancestors, as far up as they wait (or are raised), in the order in which they came. */
  lineOf(txid: string, which: 'waiting' | 'raised'): string[] {
    const rows = this.sql.all(
      `with recursive up (txid) as (values (?) union select spend.txid from up
          cross join pending_spend spend on spend.spender = up.txid cross join pending on pending.txid = spend.txid where pending.${which} = 1)
        select pending.txid from up cross join pending on pending.txid = up.txid order by arrived`,
      fromHex(txid),
    )
    return rows.map((row) => toHex(row.txid))
  }

  outline(txid: string): PendingOutline | undefined {
    if (this.isEmpty) return undefined
    const row = this.sql.get(
      'select txid, arrived, waiting, raised, mint, proven from pending where txid = ?',
      fromHex(txid),
    )
    return row && outlineOf(row)
  }

  /** The transaction to drop first: the oldest, unproven before proven. Undefined if there is none. */
  first(): string | undefined {
    const row = this.sql.get('select txid from pending where waiting = 0 order by proven, arrived limit 1')
    return row && toHex(row.txid)
  }

  /** The oldest waiting transaction of the client that has the most, except those that stay; undefined if it has no other. */
  oldestWaiting(most: keyof PendingTotal, staying: ReadonlySet<string>): string | undefined {
    const share = most === 'bytes' ? 'sum(bytes)' : 'count(*)'
    const row = this.sql.get(
      `select client from pending where waiting = 1 group by client order by ${share} desc, min(arrived) limit 1`,
    )
    return this.sql
      .all(
        'select txid from pending where waiting = 1 and client is ? order by arrived limit ?',
        ...[row?.client ?? null, staying.size + 1],
      )
      .map(({ txid }) => toHex(txid))
      .find((txid) => !staying.has(txid))
  }

  private sum(waiting: 0 | 1): PendingTotal {
    const row = this.sql.get(
      'select count(*) as transactions, coalesce(sum(bytes), 0) as bytes from pending where waiting = ?',
      waiting,
    )
    return { transactions: Number(row?.transactions), bytes: Number(row?.bytes) }
  }

  private count(isWaiting: boolean, change: PendingTotal): void {
    this.onChange()
    if (this.totals === undefined) return
    const total = this.totals[isWaiting ? 'waiting' : 'pending']
    total.transactions += change.transactions
    total.bytes += change.bytes
  }
}

/** The proofs of a pending transaction, the latest last. @param key The txid. */
export function proofsOf(sql: Sql, key: Uint8Array): Proof[] {
  const rows = sql.all('select height, root, merkle_path from pending_proof where txid = ? order by n', key)
  return rows.map(proofOf)
}

function outlineOf({ txid, arrived, waiting, raised, mint, proven }: Row): PendingOutline {
  return {
    ...{ txid: toHex(txid), arrived },
    ...{ isWaiting: waiting === 1, isRaised: raised === 1, isMint: mint === 1, isProven: proven === 1 },
  }
}
