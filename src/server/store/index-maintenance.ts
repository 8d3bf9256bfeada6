import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { Admitted, IndexComparison, IndexRebuild } from '../../../backend/src/graph/index-maintenance.js'
import { type GraphRecords, graphRecords, mergeRecords } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { spendsBy } from '../../../backend/src/graph/transaction-records.js'
import { NotReadyError } from '../../gateway/http/errors.js'
import { notReadyReason } from '../http/readiness.js'

/**
 * What is known of the index, which is what is answered of all that topics hold: being compared with that, being made anew,
 * the same, or known to differ.
 */
export type IndexState = 'comparing' | 'rebuilding' | 'equal' | 'unequal'

export interface IndexStatus {
  state: IndexState
  /** How much of the comparison or the rebuild is done, of 1. */
  done: number
}

export interface IndexMaintenanceOptions {
  store: IndexComparison & IndexRebuild
  graph: GraphStore
  /** Runs something while no submission is under way. */
  exclusively: (work: () => Promise<void>) => Promise<void>
  logger: Logger
}

/** Between two lines of progress, in milliseconds. */
const LINE_EVERY = 5000
/** Until what failed is tried again, in milliseconds. */
const AGAIN = 30_000
/** What one write of a rebuild brings at the most: bytes of transactions, and transactions. */
const BATCH_BYTES = 4 * 1024 * 1024
const BATCH_TRANSACTIONS = 100
/** Before all arrivals. */
const START = ''

/** Ended before it was done. */
class StoppedError extends Error {
  override readonly name = 'StoppedError'
}

/** Keeps what is answered equal to what was admitted: compares both at a start, and makes the index anew where it has to be. */
export class IndexMaintenance {
  private current: IndexStatus = { state: 'comparing', done: 0 }
  private stopped = false
  private said = Date.now()
  private running: Promise<void> | undefined
  private again: NodeJS.Timeout | undefined
  /** Whether this process is comparing, or making anew. */
  private isAtIt = false

  constructor(private readonly options: IndexMaintenanceOptions) {}

  get status(): IndexStatus {
    return this.current
  }

  get isRebuilding(): boolean {
    return this.current.state === 'rebuilding'
  }

  /** @throws NotReadyError while the index is being made anew, or was left so: what is decided by half of one is wrong. */
  assertIndexComplete(): void {
    if (this.isRebuilding) throw new NotReadyError(notReadyReason(this.current))
  }

  /** Looks whether the index is whole; what is said of it is true from then on. */
  async open(): Promise<void> {
    if ((await this.options.store.rebuild()) !== undefined) this.current = { state: 'rebuilding', done: 0 }
  }

  /** About how many transactions are left to compare, or to rebuild the index of. */
  async lag(): Promise<number> {
    const { state, done } = this.current
    if (state === 'equal' || state === 'unequal') return 0
    return Math.ceil((1 - done) * (await this.options.store.transactionsLeft(START)))
  }

  /** Compares in the background, with all that follows from it, until both are equal or {@link close} is called. */
  start(): void {
    const { logger } = this.options
    clearTimeout(this.again)
    this.running = this.run()
      .catch((error: unknown) => {
        if (error instanceof StoppedError) return
        logger.error({ err: error }, 'failed to compare the index with the admitted set; will retry')
      })
      .then(() => {
        if (this.stopped || this.current.state === 'equal') return
        this.again = setTimeout(() => this.start(), AGAIN).unref()
      })
  }

  async close(): Promise<void> {
    this.stopped = true
    clearTimeout(this.again)
    await this.running
  }

  /**
   * Goes on with a rebuild where one is needed, then compares and makes equal. Submissions wait meanwhile; readers do not.
   *
   * @throws what the store throws. Nothing that was done by then is lost.
   */
  async run(): Promise<void> {
    const { exclusively, store } = this.options
    this.isAtIt = true
    try {
      await exclusively(() => store.alone(() => this.makeEqual()))
    } finally {
      this.isAtIt = false
    }
  }

  /**
   * Looks whether another process that has the store is making the index anew, or has done so. Where it ended half-way,
   * this one goes on.
   */
  async notice(): Promise<void> {
    if (this.isAtIt) return
    if ((await this.options.store.rebuild()) === undefined) {
      if (this.current.state === 'rebuilding') this.current = { state: 'equal', done: 1 }
    } else if (this.current.state !== 'rebuilding') {
      this.current = { state: 'rebuilding', done: 0 }
      this.start()
    }
  }

  private async makeEqual(): Promise<void> {
    await this.rebuildWhereNeeded()
    let differ = await this.compare()
    if (differ === 'too much') {
      await this.options.store.setRebuildCheckpoint({ state: 'needed' })
      await this.rebuildWhereNeeded()
    }
    // What was mended is looked at once more, so that nobody takes the attempt for the success.
    if (differ !== 'no') differ = await this.compare()
    this.current = { state: differ === 'no' ? 'equal' : 'unequal', done: 1 }
  }

  /** Makes the whole index anew, as {@link run} does where it is needed. */
  async rebuild(): Promise<void> {
    await this.options.store.setRebuildCheckpoint({ state: 'needed' })
    await this.run()
  }

  /** Compares all, and tells again what the index lacks. */
  private async compare(): Promise<'no' | 'mended' | 'too much'> {
    const { store, logger } = this.options
    const found = { missing: 0, extra: 0, lost: 0 }
    let after: string | undefined
    do {
      this.progress('comparing', shareBefore(after))
      const part = await store.compare(after)
      found.missing += part.missing.length
      found.extra += part.extra
      found.lost += part.lost.length
      for (const txid of part.lost) {
        logger.warn({ txid }, 'removed the admissions of a transaction whose bytes are missing')
        await store.unadmit(txid)
      }
      await this.tellAgain(part.missing.filter(({ outpoint }) => !part.lost.includes(outpoint.txid)))
      after = part.upTo
      await this.pause()
    } while (after !== undefined)
    if (found.missing + found.extra + found.lost === 0) return 'no'
    logger.warn(found, 'the index did not match the admitted set')
    return found.extra > 0 || found.lost > 0 ? 'too much' : 'mended'
  }

  private async tellAgain(missing: Admitted[]): Promise<void> {
    const { graph } = this.options
    for (const txid of new Set(missing.map(({ outpoint }) => outpoint.txid))) {
      const transaction = await graph.transactions.get(txid)
      const records = transaction && this.recordsOf(transaction)
      if (records !== undefined) await graph.record(records, { again: true })
      await this.pause()
    }
  }

  private async rebuildWhereNeeded(): Promise<void> {
    const { store, graph, logger } = this.options
    let mark = await store.rebuild()
    if (mark === undefined) return
    this.progress('rebuilding', 0)
    if (mark.state === 'needed') {
      logger.info('rebuilding the index')
      await store.empty()
      mark = { state: 'under way', place: START }
      await store.setRebuildCheckpoint(mark)
    }
    const total = await store.transactionsLeft(START)
    let done = total - (await store.transactionsLeft(mark.place))
    let batch = new Batch()
    const flush = async (): Promise<void> => {
      if (batch.place === undefined) return
      await graph.record(mergeRecords(batch.records), { again: true })
      while (await graph.backlog.workOff()) await this.pause()
      await store.setRebuildCheckpoint({ state: 'under way', place: batch.place })
      done += batch.records.length
      batch = new Batch()
      this.progress('rebuilding', total === 0 ? 1 : Math.min(done / total, 1))
    }
    for await (const arrival of store.transactionLog(mark.place)) {
      const records = this.recordsOf(arrival)
      batch.add(arrival.place, arrival.raw.length, records)
      if (batch.isFull) await flush()
      await this.pause()
    }
    await flush()
    await store.setRebuildCheckpoint(undefined)
    logger.info('rebuilt the index')
  }

  /** A transaction as it came, to be judged again; undefined where its bytes are none. */
  private recordsOf({ txid, raw }: { txid: string; raw: Uint8Array }): GraphRecords | undefined {
    try {
      const spends = spendsBy(viewOf({ txid, raw }))
      // What proves it stands with it already.
      return graphRecords({ transactions: [{ txid, raw }], spends })
    } catch (error) {
      // The others are told all the same; the comparison says that this one is not.
      this.options.logger.error({ err: error, txid }, 'failed to rebuild the records of a transaction')
      return undefined
    }
  }

  private progress(state: IndexState, done: number): void {
    const began = this.current.state !== state
    this.current = { state, done }
    if (began || Date.now() - this.said < LINE_EVERY) return
    this.said = Date.now()
    this.options.logger.info({ done: Math.round(done * 100) / 100 }, `${state} the index`)
  }

  /** Lets readers have their turn. */
  private async pause(): Promise<void> {
    await setImmediate()
    if (this.stopped) throw new StoppedError('the service is stopping')
  }
}

/** What is told in one write. */
class Batch {
  readonly records: GraphRecords[] = []
  place: string | undefined
  private bytes = 0

  get isFull(): boolean {
    return this.bytes >= BATCH_BYTES || this.records.length >= BATCH_TRANSACTIONS
  }

  add(place: string, bytes: number, records: GraphRecords | undefined): void {
    this.place = place
    this.bytes += bytes
    if (records !== undefined) this.records.push(records)
  }
}

/** The share of all txids that come before one: they are spread evenly. */
function shareBefore(txid: string | undefined): number {
  return txid === undefined ? 0 : Number.parseInt(txid.slice(0, 8), 16) / 2 ** 32
}
