import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { Admitted, IndexComparison, IndexRebuild } from '../../../backend/src/graph/index-maintenance.js'
import { type GraphRecords, graphRecords, mergeRecords } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { spendsBy } from '../../../backend/src/graph/transaction-records.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { NotReadyError } from '../../gateway/http/errors.js'

/** What is known of the index compared with the admitted set. */
export interface IndexStatus {
  /**
   * Being compared, being rebuilt, known to match, or known to differ; of a log that others write, too: not heard of for a while, or
   * for long.
   */
  state: 'comparing' | 'rebuilding' | 'equal' | 'unequal' | 'resuming' | 'behind' | 'stale'
  /** The share of the comparison or the rebuild that is done, from 0 to 1. */
  done: number
}

/** The index of a node: whether answers follow from it, and what makes it complete. */
export interface NodeIndex {
  readonly status: IndexStatus
  /** Whether work that writes have left is under way. */
  readonly isBusy: boolean
  /** About how many transactions are left. */
  lag(): Promise<number>
  /** Resolves when writes have left no work. */
  workedOff(): Promise<void>
  /** Makes it complete in the background. */
  start(): void
  /** Makes it complete. */
  run(): Promise<void>
  close(): Promise<void>
}

export interface IndexMaintenanceOptions {
  store: IndexComparison & IndexRebuild
  graph: GraphStore
  runLocked: (work: () => Promise<void>) => Promise<void>
  logger: Logger
}

/** Between two log lines about progress, in milliseconds. */
const LOG_INTERVAL = 5000
/** Until a failed attempt is retried, in milliseconds. */
const RETRY_DELAY = 30_000
/** The most that one write of a rebuild records: bytes of transactions, and transactions. */
const BATCH_BYTES = 4 * 1024 * 1024
const BATCH_TRANSACTIONS = 100
/** The position before the whole transaction log. */
const START = ''

/** Maintenance ended before it was done. */
class StoppedError extends Error {
  override readonly name = 'StoppedError'
}

/** Compares the index with the admitted set at the start, and rebuilds it if necessary. */
export class IndexMaintenance {
  private current: IndexStatus = { state: 'comparing', done: 0 }
  private stopped = false
  private lastLog = monotonic()
  private running: Promise<void> | undefined
  private retry: NodeJS.Timeout | undefined
  private isRunning = false

  constructor(private readonly options: IndexMaintenanceOptions) {}

  get status(): IndexStatus {
    return this.current
  }

  get isRebuilding(): boolean {
    return this.current.state === 'rebuilding'
  }

  /** Checks whether a rebuild was interrupted; {@link status} is valid from then on. */
  async open(): Promise<void> {
    if ((await this.options.store.rebuild()) !== undefined) this.current = { state: 'rebuilding', done: 0 }
  }

  /** About how many transactions are left to compare or to rebuild. */
  async lag(): Promise<number> {
    const { state, done } = this.current
    if (state === 'equal' || state === 'unequal') return 0
    return Math.ceil((1 - done) * (await this.options.store.transactionsLeft(START)))
  }

  /** Compares, and repairs or rebuilds, in the background until the index is equal or {@link close} is called. */
  start(): void {
    const { logger } = this.options
    clearTimeout(this.retry)
    this.running = this.run()
      .catch((error: unknown) => {
        if (error instanceof StoppedError) return
        logger.error({ err: error }, 'failed to compare the index with the admitted set; will retry')
      })
      .then(() => {
        if (this.stopped || this.current.state === 'equal') return
        this.retry = setTimeout(() => this.start(), RETRY_DELAY).unref()
      })
  }

  async close(): Promise<void> {
    this.stopped = true
    clearTimeout(this.retry)
    await this.running
  }

  /**
   * Continues a rebuild if one is needed, then compares and repairs. Submissions wait meanwhile; readers do not.
   *
   * @throws what the store throws. Progress made by then is not lost.
   */
  async run(): Promise<void> {
    const { runLocked, store } = this.options
    this.isRunning = true
    try {
      await runLocked(() => store.alone(() => this.makeEqual()))
    } finally {
      this.isRunning = false
    }
  }

  /**
   * Called when another process has written: it may be rebuilding the index, or have done so. If it ended half-way, this one
   * continues.
   */
  async notifyWrite(): Promise<void> {
    if (this.isRunning) return
    if ((await this.options.store.rebuild()) === undefined) {
      if (this.current.state === 'rebuilding') this.current = { state: 'equal', done: 1 }
    } else if (this.current.state !== 'rebuilding') {
      this.current = { state: 'rebuilding', done: 0 }
      this.start()
    }
  }

  private async makeEqual(): Promise<void> {
    await this.rebuildIfNeeded()
    let differ = await this.compare()
    if (differ === 'too much') {
      await this.options.store.setRebuildCheckpoint({ state: 'needed' })
      await this.rebuildIfNeeded()
    }
    // Compared again after a repair, so that an attempt is not taken for a success.
    if (differ !== 'no') differ = await this.compare()
    this.current = { state: differ === 'no' ? 'equal' : 'unequal', done: 1 }
  }

  /** Rebuilds the whole index, needed or not. */
  async rebuild(): Promise<void> {
    await this.options.store.setRebuildCheckpoint({ state: 'needed' })
    await this.run()
  }

  /** Compares everything, and records again what the index lacks. */
  private async compare(): Promise<'no' | 'repaired' | 'too much'> {
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
      await this.recordAgain(part.missing.filter(({ outpoint }) => !part.lost.includes(outpoint.txid)))
      after = part.upTo
      await this.pause()
    } while (after !== undefined)
    if (found.missing + found.extra + found.lost === 0) return 'no'
    logger.warn(found, 'the index differed from the admitted set')
    if (found.extra > 0 || found.lost > 0) return 'too much'
    await store.recount()
    return 'repaired'
  }

  private async recordAgain(missing: Admitted[]): Promise<void> {
    const { graph } = this.options
    for (const txid of new Set(missing.map(({ outpoint }) => outpoint.txid))) {
      const transaction = await graph.transactions.get(txid)
      const records = transaction && this.recordsOf(transaction)
      if (records !== undefined) await graph.record(records, { again: true })
      await this.pause()
    }
  }

  private async rebuildIfNeeded(): Promise<void> {
    const { store, graph, logger } = this.options
    let checkpoint = await store.rebuild()
    if (checkpoint === undefined) return
    this.progress('rebuilding', 0)
    if (checkpoint.state === 'needed') {
      logger.info('rebuilding the index')
      await store.empty()
      checkpoint = { state: 'under way', place: START }
      await store.setRebuildCheckpoint(checkpoint)
    }
    const total = await store.transactionsLeft(START)
    let done = total - (await store.transactionsLeft(checkpoint.place))
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
    for await (const logged of store.transactionLog(checkpoint.place)) {
      const records = this.recordsOf(logged)
      batch.add(logged.place, logged.raw.length, records)
      if (batch.isFull) await flush()
      await this.pause()
    }
    await flush()
    await store.setRebuildCheckpoint(undefined)
    logger.info('the index is rebuilt')
  }

  /** The records of a stored transaction, to be judged again; undefined if its bytes cannot be read. */
  private recordsOf({ txid, raw }: { txid: string; raw: Uint8Array }): GraphRecords | undefined {
    try {
      const spends = spendsBy(viewOf({ txid, raw }))
      // Its proof is stored already.
      return graphRecords({ transactions: [{ txid, raw }], spends })
    } catch (error) {
      // The others are recorded all the same; the comparison reports this one as missing.
      this.options.logger.error({ err: error, txid }, 'cannot read a stored transaction to record it again')
      return undefined
    }
  }

  private progress(state: IndexStatus['state'], done: number): void {
    const isNew = this.current.state !== state
    this.current = { state, done }
    if (isNew || monotonic() - this.lastLog < LOG_INTERVAL) return
    this.lastLog = monotonic()
    this.options.logger.info({ done: Math.round(done * 100) / 100 }, `${state} the index`)
  }

  /** Lets readers run. */
  private async pause(): Promise<void> {
    await setImmediate()
    if (this.stopped) throw new StoppedError('the server stops')
  }
}

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

/** The share of all txids before one: they are distributed evenly. */
function shareBefore(txid: string | undefined): number {
  return txid === undefined ? 0 : Number.parseInt(txid.slice(0, 8), 16) / 2 ** 32
}

/** @throws NotReadyError if nothing can be written: during a rebuild, or until the thread that writes was started again. */
export function assertComplete(status: IndexStatus): void {
  const reason = status.state === 'resuming' ? notReadyReason(status) : undefined
  const error = reason === undefined ? incompleteError(status) : new NotReadyError(reason)
  if (error !== undefined) throw error
}

/** The answer while the index is rebuilt, or may lack what others have written; undefined at any other time. */
export function incompleteError(status: IndexStatus): NotReadyError | undefined {
  const reason = notReadyReason(status)
  const isWrong = status.state === 'rebuilding' || status.state === 'stale'
  return isWrong && reason !== undefined ? new NotReadyError(reason) : undefined
}

/** Why a host is not ready, if its index is not known to be equal to the admitted set. */
export function notReadyReason({ state, done }: IndexStatus): string | undefined {
  const left = `${Math.ceil((1 - done) * 100)} % left`
  if (state === 'comparing') return `comparing the index with the admitted set: ${left}`
  if (state === 'rebuilding') return `rebuilding the index: ${left}`
  if (state === 'resuming') return 'the thread that writes is started again'
  if (state === 'unequal') return 'the index does not match the admitted set; will retry'
  if (state === 'behind' || state === 'stale') return 'the log cannot be read'
  return undefined
}
