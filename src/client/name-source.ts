import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import {
  FetchBudget,
  type FetchedAnswer,
  type FetchOptions,
  field,
  readJson,
  withBounds,
} from './bounded-fetch.js'
import { SourceError } from './errors.js'

/** What an index shows for a name: nothing of it is believed before it is checked. */
export type Evidence =
  /** A proof of the origin and a provenance of the tip, each an Outpoint BEEF (BRC-158), beside what it says they are. */
  | { form: 'proofs'; origin: Outpoint; tip: Outpoint; proof: Uint8Array; provenance: Uint8Array }
  /** One BEEF with all of it, and the output that is the tip; without a txid, of the BEEF's subject. */
  | { form: 'history'; beef: Uint8Array; tip: { txid?: string; vout: number } }

/** What an index says of a name. */
export type IndexAnswer =
  | {
      kind: 'claimed'
      evidence: Evidence
      /** Whether the index says that something spends the tip it shows; undefined where it does not say. */
      spent?: boolean
    }
  /** The name is not claimed, or its ordinal was burnt: that nothing is there, nobody can prove. */
  | { kind: 'not-claimed' }
  | { kind: 'failed'; error: SourceError }

/** An answer, and the index that gave it: a URL. */
export type IndexReply = { index: string } & IndexAnswer

/** How far one index is waited for and read. */
export interface AskBounds {
  /** For all that is asked of it, in milliseconds. */
  timeout?: number
  /** What is read of all its answers together, in bytes. */
  maxBytes?: number
  /** Gives the question up. */
  signal?: AbortSignal
}

/** Where names are asked for: one index, or several that are found together. */
export interface NameSource {
  /** What it is called in reports where it does not answer at all. */
  readonly index?: string
  /**
   * One reply for each index that was asked. What an index does wrong is a reply, and no rejection. A source that does not
   * keep to the bounds is left behind when they are over.
   */
  ask(name: string, bounds?: AskBounds): Promise<IndexReply[]>
  /**
   * Finds the indexes that the source stands for, which are then asked and bounded each by itself.
   *
   * @throws SourceError where none is found.
   */
  find?(bounds?: AskBounds): Promise<NameSource[]>
  /** How many it finds at the most; 1 unless set. */
  readonly maxIndexes?: number
}

/** The longest record of a name that is read, in bytes. */
const MAX_RECORD_BYTES = 1024 * 1024

/** Where the routes of an index are. */
export interface HttpNameSourceOptions extends FetchOptions {
  /** Of the server: `https://names.example`. */
  url: string
  /** The path prefix of its routes for names; `/svc/names` unless set. */
  namesPrefix?: string
  /** The path prefix of its gateway; `/svc/gateway` unless set. */
  gatewayPrefix?: string
}

/**
 * One index, asked over its HTTP routes: what it says of the name, its proof of the origin, and the provenance of its
 * tip, in this order, so that a name that moves meanwhile is shown further on and not less far.
 */
export class HttpNameSource implements NameSource {
  /** The URL, without a slash at the end: what the index is called in reports. */
  readonly index: string
  private readonly names: string
  private readonly gateway: string

  constructor(private readonly options: HttpNameSourceOptions) {
    const { url, namesPrefix = '/svc/names', gatewayPrefix = '/svc/gateway' } = options
    this.index = url.replace(/\/+$/, '')
    this.names = this.index + namesPrefix
    this.gateway = this.index + gatewayPrefix
  }

  async ask(name: string, bounds: AskBounds = {}): Promise<IndexReply[]> {
    const budget = new FetchBudget(withBounds(this.options, bounds))
    return [{ index: this.index, ...(await this.answer(name, budget)) }]
  }

  private async answer(name: string, budget: FetchBudget): Promise<IndexAnswer> {
    try {
      const record = await this.record(name, budget)
      if (record === undefined) return { kind: 'not-claimed' }
      const { origin, tip } = record
      const proof = await fetchProof(`${this.names}/proof/${encodeURIComponent(name)}`, budget)
      const provenance = await fetchProof(`${this.gateway}/provenance/${formatOutpoint(origin)}`, budget)
      const evidence = { form: 'proofs', origin, tip: tip.outpoint, proof, provenance } as const
      return { kind: 'claimed', evidence, spent: tip.spent }
    } catch (error) {
      if (error instanceof SourceError) return { kind: 'failed', error }
      throw error
    }
  }

  /** What the index says of the name; undefined where it says that it is not claimed. */
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
      throw new SourceError('NO_PROOF', `${url} does not say where the name is now`)
    return { origin, tip: { outpoint, spent } }
  }
}

async function fetchProof(url: string, budget: FetchBudget): Promise<Uint8Array> {
  const answer = await budget.fetch(url, { headers: { Accept: 'application/octet-stream' } })
  const { status, body } = answer
  if (status === 404) throw new SourceError('NO_PROOF', `${url}: the index shows no proof`)
  if (status !== 200) throw badAnswer(url, answer)
  return body
}

interface NameRecord {
  origin: Outpoint
  tip: { outpoint: Outpoint; spent: boolean }
}

function badAnswer(url: string, answer: FetchedAnswer): SourceError {
  const { body } = answer
  const code = body.length > MAX_RECORD_BYTES ? undefined : field(readJson(body), 'code')
  const shown = typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? ` ${code}` : ''
  return new SourceError('BAD_ANSWER', `${url} answers ${answer.status}${shown}, and not as an index does`)
}

function outpointOf(text: unknown): Outpoint | undefined {
  return typeof text === 'string' ? readOutpoint(text) : undefined
}
