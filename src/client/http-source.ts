import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { FetchBudget, type FetchedAnswer, type FetchOptions, withBounds } from './bounded-fetch.js'
import { field, readJson } from './json-answer.js'
import type { AskBounds, IndexAnswer, IndexReply, NameSource } from './name-source.js'
import { SourceError } from './source-error.js'

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
