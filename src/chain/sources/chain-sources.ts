import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Sighting } from '../../../backend/src/graph/conflict-resolution.js'
import type { Block, Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { type ChainSource, type SingleSource, spends, type TransactionOptions } from './chain-source.js'
import { ChainSourceError, isOutage } from './errors.js'
import { JungleBusSource } from './junglebus.js'
import type { SourceStatus } from './status.js'

export interface ChainSourcesOptions {
  /** In order of preference; at least one. */
  sources: readonly SingleSource[]
  /**
   * Whether the chain has a block, as far as the host knows: proofs that name any other block are dropped. Without this, proofs
   * are first checked on admission.
   */
  verdict?(block: Block): Promise<'yes' | 'no' | 'unknown'>
  /** How long a question waits if all sources are resting, in milliseconds. */
  patience?: number
  logger?: Pick<Logger, 'warn'>
  /** Random numbers from 0 to 1, which choose the answers to check with another source. */
  random?(): number
}

interface SpenderOptions {
  /** The longest spender to accept, in bytes. */
  maxBytes: number
  known?: string | undefined
}

const DEFAULT_PATIENCE = 30_000
/** How long a question about sightings waits, in milliseconds: a caller may be waiting for the answer. */
const SHORT_PATIENCE = 2000
/** The share of "unspent" answers that are checked with another source. */
const SHARE = 1 / 8
/** How many "unspent" answers of a source are all checked: at the start, and after it hid a spender. */
const DOUBTED = { atStart: 20, afterHiding: 100 }
/** How many contradictions are remembered, so that each is reported once. */
const MAX_REMEMBERED = 1000

/**
 * Several chain sources as one. They are asked in order of preference: a source that fails rests, and the next one is asked
 * meanwhile. Everything that can be checked is checked, and a wrong answer counts as a failure.
 *
 * That an output is unspent cannot be checked. One such answer in eight is compared with another source's, and more if the source
 * hid a spender before.
 */
export class ChainSources implements ChainSource {
  private readonly sources: readonly SingleSource[]
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

  /** When a source that knows spenders of nodes last gave a usable answer, by `monotonic()`; undefined if none ever did. */
  get answeredAt(): number | undefined {
    const times = this.sources.flatMap(({ client, knowsNodes }) => (knowsNodes && client.answeredAt) || [])
    return times.length === 0 ? undefined : Math.max(...times)
  }

  /** How much a complete sweep covers: the chain, or only what an overlay host knows, which may be behind. */
  get scope(): 'chain' | 'host' | undefined {
    if (this.sources.some(({ knowsUnspent }) => knowsUnspent)) return 'chain'
    return this.sources.some(({ knowsNodes }) => knowsNodes) ? 'host' : undefined
  }

  /** The number of contradictions found between sources. */
  get contradictions(): number {
    return this.contradicted
  }

  /**
   * A transaction from the first source that knows it. If that one has no proof, or one of a block that is not in the chain, the
   * others are asked for a proof.
   *
   * @throws ChainSourceError `NO_ANSWER` if the sources that may know it do not answer; their other errors.
   */
  async transaction(txid: string, options: TransactionOptions): Promise<TransactionRecord | undefined> {
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

  /** The proof of a transaction from the first source whose proof is of a block in the chain. */
  async proof(txid: string): Promise<Proof | undefined> {
    const doubtful: SourcedProof[] = []
    return await this.first(async (source) => {
      const proof = await source.proof(txid)
      return proof && (await this.accepted({ txid, proof, source }, doubtful))
    })
  }

  /**
   * The transaction that spends an outpoint. Undefined if the first source that knows the chain names none, and a second source,
   * if it is asked, does not either.
   *
   * @param options.known An unproven spender that the caller has already verified: it is not returned.
   * @throws ChainSourceError `NO_ANSWER` if no source that knows the chain answers; their other errors.
   */
  async spenderOf(outpoint: Outpoint, options: SpenderOptions): Promise<TransactionRecord | undefined> {
    const answer = await this.first(async (source): Promise<Answer | undefined> => {
      const spender = await this.spenderBy(source, outpoint, options)
      return spender === undefined && !source.knowsUnspent ? undefined : { source, spender }
    })
    if (answer === undefined) return undefined
    const { source, spender } = answer
    if (spender === undefined) return await this.secondOpinion(source, outpoint, options)
    if (spender.record?.proof !== undefined) return spender.record
    return await this.minedConflict({ source, outpoint, spender }, options)
  }

  /** Whether a source knows the mempool. */
  get canSight(): boolean {
    return this.sources.some(({ sightings }) => sightings !== undefined)
  }

  /**
   * What the network said about transactions. A transaction that any source has seen is seen; if one calls it rejected, the others
   * are asked as well. Transactions that no source knows are missing.
   *
   * @throws ChainSourceError if no source that could know answers.
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
   * @returns undefined if the sources that know the chain have none.
   * @throws ChainSourceError of a source that failed, if no other source would know.
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
      // A wrong answer is no reason to wait, but it may have been cut off on its way, so the question is repeated once.
      const isLasting = errors.find(({ code }) => code !== 'NO_ANSWER')
      if (isLasting !== undefined) {
        if (isLasting.code !== 'BAD_ANSWER' || isAskedAgain) throw isLasting
        isAskedAgain = true
        continue
      }
      await this.oneRested(this.sources, { patience: end - monotonic(), error })
    }
  }

  /** Waits for a source to end its rest. @throws `error` if all rest for longer than `patience` milliseconds, or are closed. */
  private async oneRested(
    sources: readonly SingleSource[],
    { patience, error }: { patience: number; error: Error },
  ): Promise<void> {
    const open = sources.map(({ client }) => client).filter(({ isClosed }) => !isClosed)
    const [soonest] = open.sort((one, other) => one.rest - other.rest)
    if (soonest === undefined || patience <= 0 || soonest.rest > patience) throw error
    await soonest.rested()
  }

  /** The spender that a source names, after checking that it spends the outpoint. */
  private async spenderBy(
    source: SingleSource,
    outpoint: Outpoint,
    { maxBytes, known }: SpenderOptions,
  ): Promise<Spender | undefined> {
    const txid = await source.spenderOf(outpoint)
    if (txid === undefined || txid === known) return txid === undefined ? undefined : { txid }
    const record = await this.transaction(txid, { maxBytes, isUrgent: true })
    if (record !== undefined && spends(record, outpoint)) return { txid, record }
    const why = record === undefined ? 'which no source knows' : 'which does not spend it'
    throw source.client.disbelieve(
      new ChainSourceError(
        'BAD_ANSWER',
        `${source.client.name} says that ${formatOutpoint(outpoint)} is spent by ${txid}, ${why}`,
      ),
    )
  }

  /** Asks another source about an output that is unspent according to one, if this answer is to be checked. */
  private async secondOpinion(
    source: SingleSource,
    outpoint: Outpoint,
    options: SpenderOptions,
  ): Promise<TransactionRecord | undefined> {
    const { random = Math.random } = this.options
    const others = this.sources.filter((other) => other !== source && other.client.rest === 0)
    const doubted = this.doubted.get(source) ?? DOUBTED.atStart
    if (others.length === 0 || (doubted === 0 && random() >= SHARE)) return undefined
    this.turn++
    const other = others[this.turn % others.length] as SingleSource
    try {
      const spender = await this.spenderBy(other, outpoint, options)
      if (spender === undefined) {
        if (other.knowsUnspent) this.doubted.set(source, Math.max(0, doubted - 1))
        return undefined
      }
      // Unmined transactions may not have reached the other source yet; it knows mined ones, except for a short moment.
      if (spender.record?.proof && (await source.spenderOf(outpoint)) === undefined) {
        this.doubted.set(source, DOUBTED.afterHiding)
        const shown = formatOutpoint(outpoint)
        this.contradiction(
          `unspent ${shown}`,
          `${source.client.name} says that ${shown} is unspent, and ${other.client.name} that ${spender.txid} spends it, which is mined`,
        )
      }
      return spender.record
    } catch (error) {
      if (error instanceof ChainSourceError && error.code !== 'TOO_LARGE') return undefined
      throw error
    }
  }

  /** Prefers a mined spender named by another source to an unmined one. */
  private async minedConflict(
    { source, outpoint, spender }: { source: SingleSource; outpoint: Outpoint; spender: Spender },
    { maxBytes }: SpenderOptions,
  ): Promise<TransactionRecord | undefined> {
    for (const other of this.sources) {
      if (other === source || other.client.rest > 0) continue
      const conflicting = await this.spenderBy(other, outpoint, { maxBytes, known: spender.txid }).catch(
        (error: unknown) => {
          if (error instanceof ChainSourceError) return undefined
          throw error
        },
      )
      if (conflicting === undefined || conflicting.txid === spender.txid) continue
      const shown = formatOutpoint(outpoint)
      this.contradiction(
        `spent ${shown}`,
        `${shown} is spent twice: by ${spender.txid} according to ${source.client.name}, and by ${conflicting.txid} according to ${other.client.name}`,
      )
      if (conflicting.record?.proof !== undefined) return conflicting.record
    }
    return spender.record
  }

  /** The proof from a source, unless its block is not in the chain. */
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
  /** Absent if the caller knows it. */
  record?: TransactionRecord
}

interface SourcedProof {
  txid: string
  proof: Proof
  source: SingleSource
}
