import { ORIGIN, TIP } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { FrontierCoin } from '../../../backend/src/read/frontier.js'

/** The ordinals to follow: those of names, all in the store, or none. The nodes of the tree are always followed. */
export type FollowedOrdinals = 'names' | 'all' | 'none'

export type SweptStore = Pick<
  FactStore,
  'transactions' | 'names' | 'ordinals' | 'admissions' | 'frontier' | 'settings'
>

/** The setting that stores where the rotation stopped. */
const POSITION = 'follow_position'
/** The longest setting that every engine stores, with room for two bytes a character. */
const MAX_POSITION = 120

/** A position in the rotation: after a name, or after an output. Names come first, in byte order. */
type Position = `name ${string}` | `tip ${string}`
const START: Position = 'name '
const FIRST_TIP: Position = 'tip '

/** Rows per read. */
const PAGE = 200

/** The coins of this many newest transactions are asked about more often, up to a number of each kind. */
const LATEST_TRANSACTIONS = 1000
const LATEST_COINS = 500

/** How many stored unproven transactions are read in one round, and how many of them are asked about. */
const UNPROVEN_ROWS = 50_000
const UNPROVEN_ASKED = 300

/** Reads the coins to ask about from the store, page by page, and remembers where it stopped. */
export class Sweep {
  private position: Position = START
  private unprovenAfter: string | undefined
  /** Unproven transactions that wait for a proof, among those of the last round. */
  unproven = 0

  constructor(
    private readonly store: SweptStore,
    private readonly ordinals: FollowedOrdinals,
  ) {}

  /** Continues the rotation where an earlier process stopped, if one did. */
  async resume(): Promise<void> {
    const stored = await this.store.settings.get(POSITION)
    if (stored?.startsWith(START) || (this.ordinals === 'all' && stored?.startsWith(FIRST_TIP)))
      this.position = stored as Position
  }

  async save(): Promise<void> {
    await this.store.settings.set(POSITION, this.position)
  }

  /** Every live node and every followed tip, once around from where the last rotation ended. */
  async *rotation(): AsyncGenerator<FrontierCoin> {
    const begun = this.position
    yield* this.stretch(begun, undefined)
    if (begun !== START) yield* this.stretch(START, begun)
    else this.position = START
  }

  /**
   * The coins of the newest transactions: recent changes are likely to be followed by others. Nodes come first, since
   * spending one makes a name.
   */
  async *latest(): AsyncGenerator<FrontierCoin> {
    const coins = this.store.frontier.latest({ limit: LATEST_TRANSACTIONS })
    yield* coins.filter(({ kind }) => kind === 'node').slice(0, LATEST_COINS)
    let count = 0
    for (const coin of coins.filter(({ kind }) => kind === 'ordinal')) {
      if (!(await this.isFollowed(coin.outpoint))) continue
      yield coin
      if (++count === LATEST_COINS) return
    }
  }

  /**
   * Unproven transactions that wait for a proof, from where the last round ended: strangers can create any number of them.
   */
  async *unprovenTransactions(): AsyncGenerator<string> {
    const { frontier } = this.store
    const begun = this.unprovenAfter
    let isBehind = begun === undefined
    this.unproven = 0
    for (let rows = 0; rows < UNPROVEN_ROWS; rows += PAGE) {
      const after = this.unprovenAfter
      const { txids, next } = frontier.unproven({ ...(after !== undefined && { after }), limit: PAGE })
      for (const txid of txids) {
        if (isBehind && begun !== undefined && txid > begun) return
        this.unprovenAfter = txid
        yield txid
        if (++this.unproven === UNPROVEN_ASKED) return
      }
      this.unprovenAfter = next
      if (next !== undefined) continue
      if (isBehind) return
      isBehind = true
    }
  }

  async isFollowed(outpoint: Outpoint): Promise<boolean> {
    if (this.ordinals !== 'names') return this.ordinals === 'all'
    const { names, ordinals } = this.store
    const step = ordinals.at(outpoint, ORIGIN)
    return step !== undefined && names.genuineOrigins([step.origin]).length > 0
  }

  private async *stretch(from: Position, to: Position | undefined): AsyncGenerator<FrontierCoin> {
    if (from === START) yield* this.liveNode('')
    if (from.startsWith(START)) {
      for (let after: string | undefined = from.slice(START.length); after !== undefined; ) {
        const page = await this.store.names.byPrefix({ prefix: '', after, limit: PAGE })
        for (const { name, outpoint } of page) {
          this.position = `${START}${name}`.slice(0, MAX_POSITION) as Position
          if (to !== undefined && this.position > to) return
          yield* this.liveNode(name)
          if (this.ordinals === 'names') yield* this.tipOf(outpoint)
        }
        after = page.length < PAGE ? undefined : page.at(-1)?.name
      }
    }
    if (this.ordinals === 'all')
      yield* this.tips(from.startsWith(FIRST_TIP) ? from.slice(FIRST_TIP.length) : '', to)
  }

  private *liveNode(domain: string): Generator<FrontierCoin> {
    const outpoint = this.store.names.liveNode(domain)
    if (outpoint !== undefined) yield { kind: 'node', outpoint }
  }

  private async *tipOf(origin: Outpoint): AsyncGenerator<FrontierCoin> {
    const { ordinals, transactions, admissions } = this.store
    const current = await ordinals.currentOutput(origin)
    if (current !== undefined) {
      yield { kind: 'ordinal', outpoint: current }
      return
    }
    // The ordinal was burnt, or spent by a transaction that cannot be judged before its parents are known.
    const last = ordinals.at(origin, TIP)?.output.outpoint
    const spender = last && transactions.spenderOf(last)
    if (spender !== undefined && !admissions.isApplied(TOPICS.ordinals, spender))
      yield { kind: 'ordinal', outpoint: last as Outpoint }
  }

  private *tips(from: string, to: Position | undefined): Generator<FrontierCoin> {
    let after = from === '' ? undefined : parseOutpoint(from)
    do {
      const { tips, next } = this.store.frontier.tips({ ...(after && { after }), limit: PAGE })
      for (const outpoint of tips) {
        this.position = `${FIRST_TIP}${formatOutpoint(outpoint)}`
        if (to !== undefined && this.position > to) return
        yield { kind: 'ordinal', outpoint }
      }
      after = next
    } while (after !== undefined)
  }
}
