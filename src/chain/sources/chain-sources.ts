import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import type { Block, Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { type ChainSource, type SingleSource, spends, type TransactionOptions } from './chain-source.js'
import { ChainSourceError, isOutage } from './errors.js'
import { JungleBusSource } from './junglebus.js'
import type { SourceStatus } from './source-client.js'

export type { SourceStatus }

export interface ChainSourcesOptions {
  /** In order of preference; at least one. */
  sources: readonly SingleSource[]
  /**
   * Whether a block is in the chain, as far as the host knows: the proof of a source that names another block is not taken.
   * Without this, admission is the first to check proofs.
   */
  verdict?(block: Block): Promise<'yes' | 'no' | 'unknown'>
  /** How long a question waits if all sources rest, in milliseconds. */
  patience?: number
  logger?: Pick<Logger, 'warn'>
  /** Numbers from 0 to 1, for the answers that are checked with another source. */
  random?(): number
}

const DEFAULT_PATIENCE = 30_000
/** How long a question about sightings waits, in milliseconds: somebody may be waiting for its answer. */
const SHORT_PATIENCE = 2000
/** The longest spender that is fetched to check it, in bytes: questions come several at a time. */
const MAX_CHECKED_BYTES = 16 * 1024 * 1024
/** Spenders that were checked and that the caller will ask for next: how many, their bytes, and for how many milliseconds. */
const CHECKED = { max: 64, maxSize: 2 * MAX_CHECKED_BYTES, ttl: 10_000 }
/** Spenders that are too long to check, which are fetched one after another: how many, and for how many milliseconds. */
const TOO_LONG = { max: 1000, ttl: 600_000 }
/** The share of "unspent" answers that another source is asked about as well. */
const SHARE = 1 / 8
/** How many "unspent" answers of a source are all checked: at the start, and after it was found to hide a spender. */
const DOUBTED = { atStart: 20, afterHiding: 100 }
/** How many contradictions are remembered, so that each is reported once. */
const MAX_REMEMBERED = 1000

/**
 * Several chain sources as one. They are asked in order of preference: one that fails rests, and meanwhile the next is asked.
 * Whatever can be checked is, and a source with a wrong answer counts as one that failed.
 *
 * That an output is unspent cannot be checked. One answer in eight is compared with that of another source, and more of a
 * source that hid a spender before.
 */
export class ChainSources implements ChainSource {
  private readonly sources: readonly SingleSource[]
  private readonly checked = new LRUCache<string, TransactionRecord>({
    ...CHECKED,
    sizeCalculation: ({ raw }) => raw.length + 1,
  })
  /** Why these were not checked: so long, they are fetched once, by who has room for them. */
  private readonly tooLong = new LRUCache<string, ChainSourceError>(TOO_LONG)
  /** How many of the next "unspent" answers of a source are checked in any case. */
  private readonly doubted = new Map<SingleSource, number>()
  private readonly reported = new LRUCache<string, true>({ max: MAX_REMEMBERED })
  private contradicted = 0
  private turn = 0

  constructor(private readonly options: ChainSourcesOptions) {
    this.sources = options.sources
  }

  status(): SourceStatus[] {
    return this.sources.map(({ client }) => client.status)
  }

  /**
   * When one that knows spends of nodes last gave a usable answer, as `monotonic()` says; undefined if none ever did.
   */
  get answeredAt(): number | undefined {
    const times = this.sources.flatMap(({ client, knowsNodes }) => (knowsNodes && client.answeredAt) || [])
    return times.length === 0 ? undefined : Math.max(...times)
  }

  /** What the tree was followed by where a sweep is complete: an overlay host may be behind the chain. */
  get scope(): 'chain' | 'host' | undefined {
    if (this.sources.some(({ knowsUnspent }) => knowsUnspent)) return 'chain'
    return this.sources.some(({ knowsNodes }) => knowsNodes) ? 'host' : undefined
  }

  /** How many contradictions between sources were found. */
  get contradictions(): number {
    return this.contradicted
  }

  /**
   * A transaction from the first source that knows it. If that one has no proof, or one of a block that is not in the chain,
   * the others are asked for theirs.
   *
   * @throws ChainSourceError `NO_ANSWER` if the sources that may know it do not answer; what they have instead of an answer.
   */
  async transaction(txid: string, options: TransactionOptions): Promise<TransactionRecord | undefined> {
    const checked = this.checked.get(txid)
    this.checked.delete(txid)
    if (checked !== undefined && checked.raw.length <= options.maxBytes) return checked
    const tooLong = this.tooLong.get(txid)
    if (tooLong !== undefined && options.maxBytes <= MAX_CHECKED_BYTES) throw tooLong
    let found: TransactionRecord | undefined
    const doubtful: SourcedProof[] = []
    const proven = await this.first(async (source) => {
      const record = found === undefined ? await source.transaction(txid, options) : undefined
      const proof = found === undefined ? record?.proof : await source.proof(txid)
      if (record !== undefined) found = { txid, raw: record.raw }
      return proof && (await this.accepted({ txid, proof, source }, doubtful))
    }).catch((error: unknown) => {
      if (found === undefined || !(error instanceof ChainSourceError)) throw error
      return undefined
    })
    return found && { ...found, ...(proven && { proof: proven }) }
  }

  /** The proof of a transaction from the first source that has one of a block in the chain. */
  async proof(txid: string): Promise<Proof | undefined> {
    const doubtful: SourcedProof[] = []
    return await this.first(async (source) => {
      const proof = await source.proof(txid)
      return proof && (await this.accepted({ txid, proof, source }, doubtful))
    })
  }

  /**
   * The transaction that spends an outpoint: one that does, as its bytes show, unless it is longer than 16 MiB. Undefined if
   * the first source that knows the chain knows none, and the one that is asked besides, if any, does not either.
   *
   * @throws ChainSourceError `NO_ANSWER` if no source that knows the chain answers; what they have instead of an answer.
   */
  async spenderOf(outpoint: Outpoint, { known }: { known?: string } = {}): Promise<string | undefined> {
    const answer = await this.first(async (source): Promise<Answer | undefined> => {
      const spender = await this.spenderBy(source, outpoint, known)
      return spender === undefined && !source.knowsUnspent ? undefined : { source, spender }
    })
    if (answer === undefined) return undefined
    const { source, spender } = answer
    if (spender === undefined) return await this.secondOpinion(source, outpoint)
    return spender.isMined === false ? await this.minedConflict({ source, outpoint, spender }) : spender.txid
  }

  /** Whether one of them knows what is in the mempool. */
  get canSight(): boolean {
    return this.sources.some(({ sightings }) => sightings !== undefined)
  }

  /**
   * What the network said of transactions. One that any of the sources has seen is seen; one that a source calls rejected is asked
   * of the others as well. Those that no source knows are missing.
   *
   * @throws ChainSourceError if no source answers that could say so.
   */
  async sightings(txids: readonly string[]): Promise<Map<string, Sighting>> {
    const { patience = DEFAULT_PATIENCE } = this.options
    const sources = this.sources.filter(({ sightings }) => sightings !== undefined)
    const found = new Map<string, Sighting>()
    for (const end = monotonic() + Math.min(patience, SHORT_PATIENCE); ; ) {
      let failure: ChainSourceError | undefined
      let isAnswered = false
      for (const source of sources) {
        const open = txids.filter((txid) => found.get(txid) !== 'seen')
        if (open.length === 0) break
        try {
          source.client.requireAwake()
          for (const [txid, sighting] of (await source.sightings?.(open)) ?? []) found.set(txid, sighting)
          isAnswered = true
        } catch (error) {
          if (!(error instanceof ChainSourceError)) throw error
          failure ??= error
        }
      }
      if (isAnswered || failure === undefined) return found
      if (!isOutage(failure)) throw failure
      await this.oneRested(sources, { patience: end - monotonic(), error: failure })
    }
  }

  /** The first JungleBus, which has subscriptions; undefined if there is none. */
  get junglebus(): JungleBusSource | undefined {
    return this.sources.find((source) => source instanceof JungleBusSource)
  }

  close(): void {
    for (const { client } of this.sources) client.close()
  }

  /**
   * Asks the sources in order until one has an answer.
   *
   * @returns undefined if those that know the chain have none.
   * @throws ChainSourceError of a source that failed, if that leaves nobody who would know.
   */
  private async first<Found>(
    ask: (source: SingleSource) => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    const { patience = DEFAULT_PATIENCE } = this.options
    const end = monotonic() + patience
    let isAskedAgain = false
    for (;;) {
      const errors: ChainSourceError[] = []
      let isKnown = false
      for (const source of this.sources) {
        try {
          source.client.requireAwake()
          const answer = await ask(source)
          if (answer !== undefined) return answer
          isKnown ||= source.knowsUnspent
        } catch (error) {
          if (!(error instanceof ChainSourceError)) throw error
          errors.push(error)
        }
      }
      const [error] = errors
      if (isKnown || error === undefined) return undefined
      // A wrong answer is no reason to wait, but may have been cut on its way: it is asked for once more.
      const isLasting = errors.find(({ code }) => code !== 'NO_ANSWER')
      if (isLasting !== undefined) {
        if (isLasting.code !== 'BAD_ANSWER' || isAskedAgain) throw isLasting
        isAskedAgain = true
        continue
      }
      await this.oneRested(this.sources, { patience: end - monotonic(), error })
    }
  }

  /** @throws `error` if every source rests for longer than `patience` milliseconds, or is closed. */
  private async oneRested(
    sources: readonly SingleSource[],
    { patience, error }: { patience: number; error: Error },
  ): Promise<void> {
    const open = sources.map(({ client }) => client).filter(({ isClosed }) => !isClosed)
    const [soonest] = open.sort((one, other) => one.rest - other.rest)
    if (soonest === undefined || patience <= 0 || soonest.rest > patience) throw error
    await soonest.rested()
  }

  /** The spender that a source names, once it was seen to spend. */
  private async spenderBy(
    source: SingleSource,
    outpoint: Outpoint,
    known?: string,
  ): Promise<Spender | undefined> {
    const txid = await source.spenderOf(outpoint)
    if (txid === undefined) return undefined
    if (txid === known) return { txid, isMined: false }
    const shown = formatOutpoint(outpoint)
    // One that was in no block may be in one by now.
    if (this.checked.peek(txid)?.proof === undefined) this.checked.delete(txid)
    const claim = `${source.client.name} says that ${shown} is spent by ${txid}`
    try {
      const record = await this.transaction(txid, { maxBytes: MAX_CHECKED_BYTES, isUrgent: true })
      if (record === undefined)
        throw source.client.disbelieve(new ChainSourceError('BAD_ANSWER', `${claim}, which no source knows`))
      if (!spends(record, outpoint))
        throw source.client.disbelieve(
          new ChainSourceError('BAD_ANSWER', `${claim}, which does not spend it`),
        )
      this.checked.set(txid, record)
      return { txid, isMined: record.proof !== undefined }
    } catch (error) {
      // The caller fetches it within limits of its own, and checks it as well.
      if (!(error instanceof ChainSourceError && error.code === 'TOO_LARGE')) throw error
      this.tooLong.set(txid, error)
      return { txid }
    }
  }

  /** Asks another source about an output that is unspent according to one, if it is the turn of this answer. */
  private async secondOpinion(source: SingleSource, outpoint: Outpoint): Promise<string | undefined> {
    const { random = Math.random } = this.options
    const others = this.sources.filter((other) => other !== source && other.client.rest === 0)
    const doubted = this.doubted.get(source) ?? DOUBTED.atStart
    if (others.length === 0 || (doubted === 0 && random() >= SHARE)) return undefined
    this.turn++
    const other = others[this.turn % others.length] as SingleSource
    try {
      const spender = await this.spenderBy(other, outpoint)
      if (spender === undefined) {
        if (other.knowsUnspent) this.doubted.set(source, Math.max(0, doubted - 1))
        return undefined
      }
      // What is unmined may not have reached the other yet; a block has, but for a moment.
      if (spender.isMined && (await source.spenderOf(outpoint)) === undefined) {
        this.doubted.set(source, DOUBTED.afterHiding)
        const shown = formatOutpoint(outpoint)
        this.contradiction(
          `unspent ${shown}`,
          `${source.client.name} says that ${shown} is unspent, and ${other.client.name} that ${spender.txid} spends it, which is mined`,
        )
      }
      return spender.txid
    } catch (error) {
      if (error instanceof ChainSourceError) return undefined
      throw error
    }
  }

  /** Prefers a mined spender that another source names to one that is unmined. */
  private async minedConflict({
    source,
    outpoint,
    spender,
  }: {
    source: SingleSource
    outpoint: Outpoint
    spender: Spender
  }): Promise<string> {
    for (const other of this.sources) {
      if (other === source || other.client.rest > 0) continue
      const conflicting = await this.spenderBy(other, outpoint, spender.txid).catch((error: unknown) => {
        if (error instanceof ChainSourceError) return undefined
        throw error
      })
      if (conflicting === undefined || conflicting.txid === spender.txid) continue
      const shown = formatOutpoint(outpoint)
      this.contradiction(
        `spent ${shown}`,
        `${shown} is spent twice: by ${spender.txid} according to ${source.client.name}, and by ${conflicting.txid} according to ${other.client.name}`,
      )
      if (conflicting.isMined) return conflicting.txid
    }
    return spender.txid
  }

  /** The proof of a source, unless its block is not in the chain. */
  private async accepted(sourced: SourcedProof, doubtful: SourcedProof[]): Promise<Proof | undefined> {
    const { txid, proof, source } = sourced
    const verdict = await this.options.verdict?.(proof).catch(() => 'unknown' as const)
    if (verdict === 'no') {
      const { name } = source.client
      source.client.disbelieve(
        new ChainSourceError(
          'BAD_ANSWER',
          `${name} says that ${txid} is in a block at ${proof.height} that is not in the chain`,
        ),
      )
      doubtful.push(sourced)
      return undefined
    }
    for (const other of doubtful)
      this.contradiction(
        `block ${txid}`,
        `${other.source.client.name} and ${source.client.name} say that ${txid} is in different blocks, at ${other.proof.height} and ${proof.height}`,
      )
    return proof
  }

  private contradiction(key: string, message: string): void {
    if (this.reported.has(key)) return
    this.reported.set(key, true)
    this.contradicted++
    this.options.logger?.warn(`chain sources contradict each other: ${message}`)
  }
}

interface Answer {
  source: SingleSource
  spender: Spender | undefined
}

/** A transaction that a source names as a spender. */
interface Spender {
  txid: string
  /** Undefined if it is too long to check here. */
  isMined?: boolean
}

interface SourcedProof {
  txid: string
  proof: Proof
  source: SingleSource
}
