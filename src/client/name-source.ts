import { equalBytes } from '../../backend/src/protocol/bytes.js'
import {
  encodeOutpoint,
  formatOutpoint,
  isSameOutpoint,
  type Outpoint,
  readOutpoint,
} from '../../backend/src/protocol/outpoint.js'
import { heeding, serverUrl } from './arguments.js'
import {
  FetchBudget,
  type FetchedAnswer,
  type FetchOptions,
  field,
  notCaughtUp,
  readJson,
  shownCode,
  withBounds,
} from './bounded-fetch.js'
import { DEFAULT_MAX_BYTES } from './bundle.js'
import { SourceError } from './errors.js'
import type { KnownPlaces } from './known-name.js'

/** An index's evidence for a name; not trusted until it is checked. */
export type Evidence =
  /**
   * A proof of the origin and a provenance of the tip, each an Outpoint BEEF (BRC-158), and the index's claims about both. Either
   * may leave out what the asker knows, and is absent if nothing is left. A name that has not moved needs no provenance.
   */
  | {
      form: 'proofs'
      origin: Outpoint
      tip: Outpoint
      proof?: Uint8Array
      provenance?: Uint8Array
      /** Whether the proof is only a part, of an earlier name on the way; then there is no provenance yet. */
      isPart?: true
    }
  /** One BEEF with everything, and the output of the tip: without a txid, an output of the BEEF's subject. */
  | { form: 'history'; beef: Uint8Array; tip: { txid?: string; vout: number } }

/** What an index says about a name. */
export type IndexAnswer =
  | {
      kind: 'claimed'
      evidence: Evidence
      /** Whether the index says that the tip is spent; undefined if it does not say. */
      spent?: boolean
    }
  /** The name is not claimed, or its ordinal was burnt. Nobody can prove that. */
  | { kind: 'not-claimed' }
  | { kind: 'failed'; error: SourceError }

export type IndexReply = { index: string } & IndexAnswer

export interface AskBounds {
  /** Time for all requests to it, in milliseconds. */
  timeout?: number
  /** The limit on all of its answers together, in bytes. */
  maxBytes?: number
  /** Cancels the question. */
  signal?: AbortSignal
  /** What the asker has verified already: evidence may leave it out. */
  known?: KnownPlaces
  /**
   * How many bytes are enough if the whole way is too large: evidence may then end with an earlier name on it. By default, all is
   * wanted.
   */
  partBytes?: number | undefined
}

/** A source of answers about names: one index, or several that it discovers. */
export interface NameSource {
  /** The name of the source in reports, if it does not answer at all. */
  readonly index?: string
  /**
   * Resolves to one reply per index that was asked. An index's failure is a reply, not a rejection. A source that exceeds
   * the bounds is abandoned.
   */
  ask(name: string, bounds?: AskBounds): Promise<IndexReply[]>
  /**
   * Discovers the indexes behind this source, the best first, each of which is then asked within its own bounds.
   *
   * @throws SourceError if there is none.
   */
  find?(bounds?: AskBounds): Promise<NameSource[]>
  /** How many of the discovered indexes are asked at once; 1 by default. The next ones are asked until one shows the name. */
  readonly maxIndexes?: number
}

/** The longest record of a name that is read, in bytes. */
const MAX_RECORD_BYTES = 1024 * 1024

export interface HttpNameSourceOptions extends FetchOptions {
  /** The URL of the server: `https://names.example`. */
  url: string
  /** The path prefix of its routes for names; `/svc/names` by default. */
  namesPrefix?: string
  /** The path prefix of its gateway; `/svc/gateway` by default. */
  gatewayPrefix?: string
}

/**
 * One index over HTTP, which is asked for its record of the name, then the proof of the origin, then the provenance of the tip.
 * In this order, a name that moves meanwhile is shown further along, never less far.
 */
export class HttpNameSource implements NameSource {
  /** The URL, without a slash at the end, which is also the name of the index in reports. */
  readonly index: string
  private readonly names: string
  private readonly gateway: string

  constructor(private readonly options: HttpNameSourceOptions) {
    const { url, namesPrefix = '/svc/names', gatewayPrefix = '/svc/gateway' } = options
    this.index = serverUrl(url, 'url')
    this.names = this.index + namesPrefix
    this.gateway = this.index + gatewayPrefix
  }

  async ask(name: string, bounds: AskBounds = {}): Promise<IndexReply[]> {
    const limits = withBounds(this.options, bounds)
    const budget = new FetchBudget(limits)
    return [{ index: this.index, ...(await heeding(limits.signal, () => this.answer(name, budget, bounds))) }]
  }

  private async answer(
    name: string,
    budget: FetchBudget,
    { known, partBytes }: AskBounds,
  ): Promise<IndexAnswer> {
    try {
      const record = await this.record(name, budget)
      if (record === undefined) return { kind: 'not-claimed' }
      const { origin, tip } = record
      const evidence: Evidence = { form: 'proofs', origin, tip: tip.outpoint }
      const isKnown = known?.origin !== undefined && isSameOutpoint(known.origin, origin)
      if (!isKnown) {
        const url = `${this.names}/proof/${encodeURIComponent(name)}`
        let isPart = false
        evidence.proof = await wholeOrPart({ partBytes, budget }, async (maxBytes) => {
          isPart = maxBytes !== undefined
          return await fetchProof(url + partQuery(known?.nodes, maxBytes), budget)
        })
        if (isPart && !isOf(evidence.proof, origin))
          return { kind: 'claimed', evidence: { ...evidence, isPart: true } }
      }
      // The proof that was just fetched has the script of the origin.
      const place = isKnown ? known.tip : known && origin
      if (place === undefined || !isSameOutpoint(place, tip.outpoint))
        evidence.provenance = await fetchProof(
          `${this.gateway}/provenance/${formatOutpoint(origin)}${partQuery(known && [place ?? origin])}`,
          budget,
        )
      return { kind: 'claimed', evidence, spent: tip.spent }
    } catch (error) {
      if (error instanceof SourceError) return { kind: 'failed', error }
      throw error
    }
  }

  /** The index's record of the name; undefined if it says that the name is not claimed. */
  private async record(name: string, budget: FetchBudget): Promise<NameRecord | undefined> {
    const url = `${this.names}/${encodeURIComponent(name)}`
    const answer = await budget.fetch(url, { headers: { Accept: 'application/json' } }, MAX_RECORD_BYTES)
    const json = readJson(answer.body)
    if (answer.status === 404 && field(json, 'code') === 'NOT_FOUND') return undefined
    if (answer.status !== 200) throw badAnswer(url, answer)
    const tip = field(json, 'tip')
    const origin = outpointOf(field(json, 'origin'))
    if (origin === undefined) throw badAnswer(url, answer)
    const outpoint = outpointOf(field(tip, 'outpoint'))
    const spent = field(tip, 'spent')
    if (outpoint === undefined || typeof spent !== 'boolean')
      throw new SourceError('NO_PROOF', `${url} does not say where the name is`)
    return { origin, tip: { outpoint, spent } }
  }
}

/** Asks for the whole way, and for a part of it if the whole is refused as too large. */
export async function wholeOrPart<Answer>(
  { partBytes, budget }: { partBytes: number | undefined; budget: FetchBudget },
  ask: (maxBytes?: number) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof SourceError) || error.code !== 'TOO_LARGE' || partBytes === undefined) throw error
    // Half of what may be read: the proof of the last step needs room, too.
    const maxBytes = Math.min(partBytes, Math.floor(budget.bytesLeft / 2))
    if (maxBytes < 1) throw error
    return await ask(maxBytes)
  }
}

function partQuery(known: readonly Outpoint[] = [], maxBytes?: number): string {
  const parts = [
    ...(known.length > 0 ? [`known=${known.map(formatOutpoint).join(',')}`] : []),
    ...(maxBytes === undefined ? [] : [`maxBytes=${maxBytes}`]),
  ]
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

/** Whether an Outpoint BEEF (BRC-158) names an output; only a check shows what it proves. */
function isOf(proof: Uint8Array, outpoint: Outpoint): boolean {
  return equalBytes(proof.subarray(4, 40), encodeOutpoint(outpoint))
}

async function fetchProof(url: string, budget: FetchBudget): Promise<Uint8Array> {
  const answer = await budget.fetch(
    url,
    { headers: { Accept: 'application/octet-stream' } },
    DEFAULT_MAX_BYTES,
  )
  const { status, body } = answer
  if (status === 404) throw new SourceError('NO_PROOF', `${url}: the index has no proof`)
  if (status !== 200) throw badAnswer(url, answer)
  return body
}

interface NameRecord {
  origin: Outpoint
  tip: { outpoint: Outpoint; spent: boolean }
}

function badAnswer(url: string, answer: FetchedAnswer): SourceError {
  const early = notCaughtUp(url, answer)
  if (early !== undefined) return early
  return new SourceError(
    'BAD_ANSWER',
    `${url} answered ${answer.status}${shownCode(answer)}, which is not a minetree answer`,
  )
}

function outpointOf(text: unknown): Outpoint | undefined {
  return typeof text === 'string' ? readOutpoint(text) : undefined
}
