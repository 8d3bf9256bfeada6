import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Row, Sql, type SqlValue } from '../../backend/src/facts/connection.js'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { GeneralError, messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { Transaction } from '../../backend/src/protocol/sdk-types.js'
import { MiningError } from '../mining/mining-error.js'
import { type Draft, inputOf, type Paid, spentBy } from './draft.js'
import type { Coin } from './key.js'

/**
 * The state of a payment:
 *
 * - `pending`: signed and stored; it may or may not have been sent;
 * - `sent`: the network has accepted it, or no network is asked and a server has it;
 * - `mined`: it is in a block;
 * - `lost`: the network rejects it, or another transaction has spent its inputs. Its coins may be spent again.
 */
export type PaymentState = 'pending' | 'sent' | 'mined' | 'lost'

const KINDS = ['mint', 'move', 'publish', 'advertise'] as const

export interface Purpose {
  kind: (typeof KINDS)[number]
  /** The name, or the URL that is advertised. */
  subject: string
  /** Where it counts: the genesis of a tree, or the key of a host. */
  place: string
}

export interface Payment extends Purpose {
  txid: string
  state: PaymentState
  /** Whether a server has accepted it. */
  isAdmitted: boolean
  /** `wallet`, or the address of the key. */
  payer: string
  /** In satoshis. */
  fee: number
  /** Includes its merkle path or its ancestors. */
  transaction: Transaction
}

/** Selects payments; by default all. */
export interface Selection extends Partial<Pick<Purpose, 'place' | 'subject'>> {
  kinds?: readonly Purpose['kind'][]
}

// A coin is reserved by the one payment that spends it and is not lost. So are names, and anything else that only its holder
// spends.
const SCHEMA = `
  create table if not exists payments (
    txid text primary key, kind text not null, subject text not null, place text not null, network text not null,
    payer text not null, state text not null, admitted integer not null, fee integer not null, change integer,
    beef blob not null, number integer not null unique);
  create table if not exists reserved (outpoint text primary key, txid text not null) without rowid;`

/** How long a command waits while another one writes, in milliseconds: signing a mint takes a second at most. */
const PATIENCE = 60_000

/**
 * The payments of all commands of a user, in one SQLite file. A payment is on disk, readable by its owner only, before it is sent
 * anywhere. Choosing coins, signing and storing are one transaction of the file, so that no two processes spend the same coin.
 * The operating system releases SQLite's lock when its process ends, for whatever reason, and the lock works between containers
 * that share a volume.
 */
export class Journal {
  private readonly sql: Sql

  /**
   * @param path The file, which is created with its folder.
   * @param network The chain of its payments: change on one chain is no coin on another.
   * @throws GeneralError `JOURNAL` if it cannot be opened, read or written
   */
  constructor(
    readonly path: string,
    private readonly network: string,
  ) {
    this.sql = this.possible(() => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      // SQLite gives its other files the mode of this one.
      closeSync(openSync(path, 'a', 0o600))
      const sql = new Sql(path, PATIENCE)
      // Not WAL, whose shared memory needs one kernel; `extra` also syncs the folder after a commit.
      sql.exec(`pragma synchronous = extra; ${SCHEMA}`)
      return sql
    })
  }

  close(): void {
    this.sql.close()
  }

  /** Runs work while no other process can change the journal. If it fails, its changes are undone. */
  async exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    this.possible(() => this.sql.exec('begin immediate'))
    try {
      const result = await work()
      this.possible(() => this.sql.exec('commit'))
      return result
    } catch (error) {
      if (this.sql.inTransaction) this.sql.exec('rollback')
      throw error
    }
  }

  /**
   * Stores a payment as pending, within {@link exclusively}. Once that resolves, the payment survives a power failure.
   *
   * @throws MiningError `UNDECIDED` if a payment with the same purpose, or one that spends an input of the draft, may still
   * count.
   */
  add({ transaction, beef, fee }: Paid, { draft, ...paid }: Purpose & { payer: string; draft: Draft }): void {
    const { kind, subject, place, payer } = paid
    const txid = transaction.id('hex')
    const open = this.get(
      `select txid from payments where kind = ? and subject = ? and place = ?
        and state <> 'lost' and (state = 'pending' or admitted = 0)`,
      ...[kind, subject, place],
    )
    if (open !== undefined) throw undecided(draft.what, open.txid)
    const change = transaction.outputs.length === draft.outputs.length ? null : draft.outputs.length
    this.run(
      // A lost payment may be made again, byte for byte.
      `insert or replace into payments select ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ?, coalesce(max(number), 0) + 1 from payments`,
      ...[txid, kind, subject, place, this.network, payer, fee, change, beef],
    )
    const own = new Map(draft.inputs.map((each) => [inputOf(transaction, each), each]))
    for (const [index, outpoint] of spentBy(transaction).map(formatOutpoint).entries()) {
      const input = own.get(index)
      // A wallet reserves its own coins, and anybody may spend a node.
      if (input === undefined ? payer === WALLET : input.isOpen) continue
      const holder = this.get('select txid from reserved where outpoint = ?', outpoint)
      if (holder !== undefined) throw spentAlready(draft.what, holder.txid, this.stateOf(holder.txid))
      this.run('insert into reserved values (?, ?)', outpoint, txid)
    }
  }

  setState(txid: string, state: PaymentState): void {
    this.run(`update payments set state = ? where txid = ?`, state, txid)
  }

  setAdmitted(txid: string): void {
    this.run(`update payments set admitted = 1 where txid = ?`, txid)
  }

  /** Records that a payment is in a block, with its merkle path. */
  setMined(txid: string, beef: Uint8Array): void {
    this.run(`update payments set state = 'mined', beef = ? where txid = ?`, beef, txid)
  }

  /**
   * Gives up a payment and those that spend its outputs. What they reserved is free again.
   *
   * @param other A transaction that has spent an output of ours for good.
   * @returns Whether the payment is in the journal.
   */
  async lose(txid: string, other?: { txid: string; outpoint: string }): Promise<boolean> {
    return await this.exclusively(async () => {
      const lost = [txid]
      for (const each of lost) {
        const spending = this.all(
          'select txid from reserved where outpoint between ? and ?',
          `${each}_`,
          `${each}_:`,
        )
        lost.push(...spending.map((row) => String(row.txid)))
        this.setState(each, 'lost')
        this.run('delete from reserved where txid = ?', each)
      }
      if (other !== undefined)
        this.run('insert or replace into reserved values (?, ?)', other.outpoint, other.txid)
      return this.get('select txid from payments where txid = ?', txid) !== undefined
    })
  }

  /** Payments in the order in which they were made, so that each comes after those whose outputs it spends. */
  payments({ kinds = KINDS, place, subject }: Selection = {}): Payment[] {
    const rows = this.all(
      `select * from payments where kind in (${kinds.map(() => '?').join()})
        and place = coalesce(?, place) and subject = coalesce(?, subject) order by number`,
      ...[...kinds, place ?? null, subject ?? null],
    )
    return rows.map(paymentOf)
  }

  stateOf(txid: string): PaymentState | undefined {
    return this.get('select state from payments where txid = ?', txid)?.state
  }

  /** Whether a payment that may count spends an output. */
  isReserved(outpoint: string): boolean {
    return this.get('select 1 from reserved where outpoint = ?', outpoint) !== undefined
  }

  /**
   * The unspent coins of a key: outputs of the given transactions, and change of payments that the network or a server has
   * accepted.
   *
   * @param key.lock The P2PKH lock of its address, as hex.
   */
  coins({ lock, address }: { lock: string; address: string }, given: readonly Transaction[]): Coin[] {
    const change = this.all(
      `select * from payments where payer = ? and network = ? and state in ('sent', 'mined') and change is not null
        and not exists (select 1 from reserved where outpoint = payments.txid || '_' || change)`,
      ...[address, this.network],
    )
    const lost = this.all(`select * from payments where payer = ? and state = 'lost'`, address)
    const doubtful = new Set(lost.flatMap((row) => spentBy(paymentOf(row).transaction).map(formatOutpoint)))
    const spent = new Set(given.flatMap((each) => spentBy(each).map(formatOutpoint)))
    const each = new Map(
      [...change.map((row) => paymentOf(row).transaction), ...given].map((found) => [found.id('hex'), found]),
    )
    return [...each].flatMap(([txid, transaction]) =>
      [...transaction.outputs.entries()].flatMap(([vout, { lockingScript }]) => {
        const outpoint = formatOutpoint({ txid, vout })
        const isFree = lockingScript.toHex() === lock && !spent.has(outpoint) && !this.isReserved(outpoint)
        return isFree ? [{ transaction, vout, isDoubtful: doubtful.has(outpoint) }] : []
      }),
    )
  }

  private all(statement: string, ...values: SqlValue[]): Row[] {
    return this.possible(() => this.sql.all(statement, ...values))
  }

  private get(statement: string, ...values: SqlValue[]): Row | undefined {
    return this.possible(() => this.sql.get(statement, ...values))
  }

  private run(statement: string, ...values: SqlValue[]): void {
    this.possible(() => this.sql.run(statement, ...values))
  }

  private possible<Result>(doing: () => Result): Result {
    try {
      return doing()
    } catch (cause) {
      throw new GeneralError(
        'JOURNAL',
        `cannot use the journal of payments ${this.path}: ${messageOf(cause)}`,
        {
          cause,
        },
      )
    }
  }
}

/** The payer of a payment by a wallet. */
export const WALLET = 'wallet'

function paymentOf(row: Row): Payment {
  const { txid, kind, subject, place, payer, state, admitted, fee, beef } = row
  let transaction: Transaction | undefined
  return {
    ...{ txid, kind, subject, place, payer, state, fee, isAdmitted: admitted === 1 },
    // Read on use: most payments of a journal are finished.
    get transaction() {
      transaction ??= readBeefTransaction(Uint8Array.from(beef), { txid, hash: nativeHash256 })
      return transaction
    },
  }
}

function spentAlready(what: string, txid: string, state: PaymentState | undefined): MiningError {
  if (state === 'pending') return undecided(what, txid)
  // Giving up a payment that the network has would allow a double spend.
  return new MiningError(
    'UNDECIDED',
    `no payment for ${what}: ${txid} has already spent one of its inputs, but the server does not show ${txid}: try again later, or ask another server`,
  )
}

function undecided(what: string, txid: string): MiningError {
  return new MiningError(
    'UNDECIDED',
    `no payment for ${what}: the earlier payment ${txid} may still count; try again later, or give it up with minetree payments --lose ${txid}`,
  )
}
