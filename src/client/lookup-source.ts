import {
  HTTPSOverlayLookupFacilitator,
  type LookupAnswer,
  type LookupQuestion,
  LookupResolver,
  type LookupResolverConfig,
  type OverlayLookupFacilitator,
} from '@bsv/sdk'
import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { LOOKUP_SERVICES } from '../../backend/src/protocol/profile.js'
import { type FetchedAnswer, type FetchOptions, fetchBounded } from './bounded-fetch.js'
import { field, readJson } from './json-answer.js'
import type { IndexAnswer, IndexReply, NameSource } from './name-source.js'
import { SourceError } from './source-error.js'

/** Which hosts are asked, and how. */
export interface LookupNameSourceOptions extends FetchOptions {
  /** How the SDK's resolver finds hosts: its network, trackers, overrides. */
  resolver?: Omit<LookupResolverConfig, 'facilitator'>
  /** The lookup service; `ls_names` unless set. */
  service?: string
}

/**
 * The hosts that the SDK's `LookupResolver` finds for a lookup service (SLAP, BRC-101), each an index of its own.
 *
 * The resolver finds, ranks and passes over hosts; their answers are read here. It would keep one of two answers of the
 * same output, whichever host lied; and its own reader cuts an answer down to what a proven tip needs for itself, so that
 * nothing of the history is left.
 */
export class LookupNameSource implements NameSource {
  private readonly resolver: LookupResolver
  private readonly facilitator: CollectingFacilitator
  private readonly service: string

  constructor(private readonly options: LookupNameSourceOptions = {}) {
    const { resolver = {}, service = LOOKUP_SERVICES.names } = options
    this.service = service
    // As the SDK has it: plain HTTP is for a network of one's own.
    const allowHttp = resolver.networkPreset === 'local'
    this.facilitator = new CollectingFacilitator({ ...options, allowHttp })
    this.resolver = new LookupResolver({ ...resolver, facilitator: this.facilitator })
  }

  async ask(name: string): Promise<IndexReply[]> {
    const { service } = this
    const question = { service, query: { name, history: true } }
    const replies = this.facilitator.collect(question)
    try {
      await this.resolver.query(question, this.options.timeout)
    } catch (cause) {
      // No hosts were found, or all of them are being passed over.
      const reason = cause instanceof Error ? cause.message : String(cause)
      const error = new SourceError('UNREACHABLE', `no host answers ${service}: ${reason}`, { cause })
      return replies.length > 0 ? replies : [{ index: service, kind: 'failed', error }]
    }
    return replies
  }
}

/** Asks hosts for the resolver, and keeps what each one said of a name. */
class CollectingFacilitator implements OverlayLookupFacilitator {
  private readonly replies = new WeakMap<object, IndexReply[]>()
  /** For the resolver's own questions, which host serves what. */
  private readonly plain: HTTPSOverlayLookupFacilitator

  constructor(private readonly options: FetchOptions & { allowHttp: boolean }) {
    this.plain = new HTTPSOverlayLookupFacilitator(options.fetch, options.allowHttp)
  }

  /** Replies to a question will be put here, one a host. */
  collect(question: LookupQuestion): IndexReply[] {
    const replies: IndexReply[] = []
    this.replies.set(question, replies)
    return replies
  }

  /** @returns No outputs where they were collected: then the resolver waits for every host, and merges nothing. */
  async lookup(url: string, question: LookupQuestion, timeout?: number): Promise<LookupAnswer> {
    const replies = this.replies.get(question)
    if (replies === undefined) return await this.plain.lookup(url, question, timeout)
    const index = url.replace(/\/+$/, '')
    try {
      replies.push({ index, ...(await this.answer(index, question)) })
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      replies.push({ index, kind: 'failed', error })
      // The resolver counts it against the host.
      throw error
    }
    return { type: 'output-list', outputs: [] }
  }

  private async answer(url: string, question: LookupQuestion): Promise<IndexAnswer> {
    const { allowHttp } = this.options
    if (!url.startsWith('https:') && !allowHttp)
      throw new SourceError('UNREACHABLE', `${url} is not asked: it is no https URL`)
    // A host that knows what the SDK's reader does to histories gives JSON unless binary is asked for twice.
    const headers = {
      'Content-Type': 'application/json',
      'X-Aggregation': 'yes',
      Accept: 'application/octet-stream, application/json;q=0.5',
    }
    const body = JSON.stringify(question)
    const answer = await fetchBounded(`${url}/lookup`, { method: 'POST', headers, body }, this.options)
    if (answer.status !== 200) throw badAnswer(url, `status ${answer.status}`)
    const outputs =
      answer.contentType === 'application/octet-stream' ? readAggregate(url, answer) : readList(url, answer)
    const [output] = outputs
    if (output === undefined) return { kind: 'not-claimed' }
    if (outputs.length > 1) throw badAnswer(url, 'more than one output for one name')
    const { beef, ...tip } = output
    // To name an output as the current one is to say that nothing spends it.
    return { kind: 'claimed', evidence: { form: 'history', beef, tip }, spent: false }
  }
}

interface AnsweredOutput {
  beef: Uint8Array
  txid?: string
  vout: number
}

/** More outputs than an answer about one name can have. */
const MAX_OUTPUTS = 100

/** The binary form of an answer (`X-Aggregation`): outputs with their contexts, and one BEEF. */
function readAggregate(url: string, { body }: FetchedAnswer): AnsweredOutput[] {
  const cursor = new ByteCursor(body, (message) => badAnswer(url, message))
  const outputs: { txid: string; vout: number }[] = []
  for (let left = cursor.count('outputs', MAX_OUTPUTS); left > 0; left--) {
    // In shown order, as the SDK reads it.
    const txid = toHex(cursor.take(32))
    const vout = cursor.varint()
    cursor.take(cursor.varint())
    outputs.push({ txid, vout })
  }
  const beef = body.subarray(cursor.at)
  return outputs.map((output) => ({ ...output, beef }))
}

/** The JSON form: each output with a BEEF of its own, whose subject it is an output of. */
function readList(url: string, { body }: FetchedAnswer): AnsweredOutput[] {
  const answer = readJson(body)
  const outputs = field(answer, 'outputs')
  if (field(answer, 'type') !== 'output-list' || !Array.isArray(outputs))
    throw badAnswer(url, 'no list of outputs')
  return outputs.map((output: unknown) => {
    const beef = field(output, 'beef')
    const vout = field(output, 'outputIndex')
    if (typeof vout !== 'number' || !Number.isSafeInteger(vout) || vout < 0 || vout > 0xffffffff)
      throw badAnswer(url, 'an output without its index')
    if (!isByteList(beef)) throw badAnswer(url, 'an output without its BEEF')
    return { beef: Uint8Array.from(beef), vout }
  })
}

function isByteList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 0xff)
}

function badAnswer(url: string, reason: string): SourceError {
  return new SourceError('BAD_ANSWER', `${url} answers not as a lookup service does: ${reason}`)
}
