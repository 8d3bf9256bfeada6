import {
  type LookupAnswer,
  type LookupQuestion,
  LookupResolver,
  type OverlayLookupFacilitator,
} from '@bsv/sdk'
import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES } from '../../backend/src/protocol/profile.js'
import type { LookupResolverConfig } from '../../backend/src/protocol/sdk-types.js'
import { heeding } from './arguments.js'
import {
  DEFAULT_TIMEOUT,
  FetchBudget,
  type FetchedAnswer,
  type FetchOptions,
  fetchBounded,
  field,
  notCaughtUp,
  readJson,
  withBounds,
} from './bounded-fetch.js'
import { SourceError } from './errors.js'
import {
  type AskBounds,
  type IndexAnswer,
  type IndexReply,
  type NameSource,
  wholeOrPart,
} from './name-source.js'

export interface LookupNameSourceOptions extends FetchOptions {
  /** How the SDK's resolver finds hosts: its network, trackers and overrides. */
  resolver?: Omit<LookupResolverConfig, 'facilitator'>
  /** The lookup service; `ls_names` by default. */
  service?: string
  /**
   * How many hosts to ask at once, those with the best record first, and at random among equals; 8 by default. The next ones are
   * asked until one shows the name.
   */
  maxHosts?: number
}

const DEFAULT_MAX_HOSTS = 8

/**
 * The hosts that the SDK's `LookupResolver` finds for a lookup service (SLAP, BRC-101), each of them an index.
 *
 * The resolver finds and ranks hosts; the answers of trackers and hosts are read here. The resolver would keep only one of two
 * answers with the same output, even if that host lied; and its own reader has no limits, follows redirects, and reduces an
 * answer to the proof of its tip, which drops the history.
 */
export class LookupNameSource implements NameSource {
  /** The lookup service, which stands for this source in reports if no host is found. */
  readonly index: string
  readonly maxIndexes: number
  private readonly resolver: LookupResolver
  private readonly facilitator: HostCollector

  constructor(private readonly options: LookupNameSourceOptions = {}) {
    const { resolver = {}, service = LOOKUP_SERVICES.names, maxHosts = DEFAULT_MAX_HOSTS } = options
    this.index = service
    this.maxIndexes = maxHosts
    this.facilitator = new HostCollector(options)
    this.resolver = new LookupResolver({ ...resolver, facilitator: this.facilitator })
  }

  /** Asks hosts until one shows the name; each gets an equal share of `maxBytes`. */
  async ask(name: string, bounds: AskBounds = {}): Promise<IndexReply[]> {
    const { timeout, maxBytes, signal } = withBounds(this.options, bounds)
    const start = monotonic()
    const found = await this.find(bounds).catch((error: unknown) => {
      if (error instanceof SourceError) return error
      throw error
    })
    if (found instanceof SourceError) return [{ index: this.index, kind: 'failed', error: found }]
    const replies: IndexReply[] = []
    const left = (): number => Math.max(0, timeout - (monotonic() - start))
    for (let at = 0; at < found.length && left() > 0; at += this.maxIndexes) {
      const rounds = Math.ceil((found.length - at) / this.maxIndexes)
      const each: AskBounds = {
        timeout: left() / rounds,
        maxBytes: Math.floor(maxBytes / found.length),
        signal,
      }
      const next = found.slice(at, at + this.maxIndexes).map((host) => host.ask(name, each))
      replies.push(...(await Promise.all(next)).flat())
      if (replies.some(({ kind }) => kind === 'claimed')) break
    }
    return replies
  }

  /**
   * The hosts to ask, the best ranked first. Hosts whose URL is not allowed come last.
   *
   * @throws SourceError `UNREACHABLE` if there are none, or the resolver currently avoids all of them; the reason of the signal.
   */
  async find(bounds: AskBounds = {}): Promise<NameSource[]> {
    const { signal } = withBounds(this.options, bounds)
    const hosts = await heeding(signal, () => this.hosts())
    // The SDK's rule: plain HTTP only on a local network.
    const allowHttp = this.options.resolver?.networkPreset === 'local'
    const sources = hosts.map(
      (host) => new LookupHost(host, { ...this.options, service: this.index, allowHttp }),
    )
    const isFirst = (source: LookupHost, at: number): boolean =>
      sources.findIndex(({ index }) => index === source.index) === at
    return sources.filter(isFirst).sort((one, other) => Number(other.isAskable) - Number(one.isAskable))
  }

  private async hosts(): Promise<FoundHost[]> {
    const question = { service: this.index, query: {} }
    const collected = this.facilitator.collect(question)
    try {
      // The resolver itself never answers: it waits for hosts that are asked elsewhere.
      await Promise.race([collected, this.resolver.query(question)])
    } catch (cause) {
      throw new SourceError('UNREACHABLE', `no host found for ${this.index}: ${messageOf(cause)}`, { cause })
    }
    return await collected
  }
}

/** A host that the resolver would ask. The resolver ranks it by the outcome. */
interface FoundHost {
  url: string
  answered(): void
  failed(error: unknown): void
}

/** More hosts than any service has. */
const MAX_FOUND_HOSTS = 1000

/** Asks trackers for the resolver. Hosts are only collected, in the order of their rank. */
class HostCollector implements OverlayLookupFacilitator {
  private readonly collecting = new WeakMap<object, (host: FoundHost) => void>()

  constructor(private readonly options: LookupNameSourceOptions) {}

  /** The hosts to which the resolver would send a question. */
  async collect(question: LookupQuestion): Promise<FoundHost[]> {
    const found: FoundHost[] = []
    return await new Promise((resolve) => {
      this.collecting.set(question, (host) => {
        if (found.length < MAX_FOUND_HOSTS) found.push(host)
        // The resolver asks all hosts synchronously, before any promise continues.
        resolve(found)
      })
    })
  }

  async lookup(url: string, question: LookupQuestion, timeout = Infinity): Promise<LookupAnswer> {
    const add = this.collecting.get(question)
    if (add === undefined) return await askTracker({ url, question, patience: timeout }, this.options)
    return await new Promise((resolve, reject) => {
      add({ url, answered: () => resolve({ type: 'output-list', outputs: [] }), failed: reject })
    })
  }
}

/** The longest answer of a tracker that is read, in bytes; a host's record takes about 5 KB. */
const MAX_TRACKER_BYTES = 2 * 1024 * 1024
/** How many records of a tracker are read, and the longest BEEF among them: the SDK parses all of them synchronously. */
const MAX_RECORDS = 200
const MAX_RECORD_BYTES = 128 * 1024

/**
 * Asks a SLAP tracker for hosts. The answer is requested as JSON, because from a binary one the SDK makes a BEEF of all records for
 * each record.
 *
 * @throws SourceError as fetchBounded, and `BAD_ANSWER`.
 */
async function askTracker(
  { url, question, patience }: { url: string; question: LookupQuestion; patience: number },
  { fetch, resolver, timeout = DEFAULT_TIMEOUT }: LookupNameSourceOptions,
): Promise<LookupAnswer> {
  if (!isEncrypted(url) && resolver?.networkPreset !== 'local') throw notAsked(url)
  const answer = await fetchBounded(
    `${url}/lookup`,
    {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify(question),
    },
    // Leaves time to ask the hosts.
    { timeout: Math.min(patience, timeout / 2), maxBytes: MAX_TRACKER_BYTES, fetch },
  )
  if (answer.status !== 200) throw badAnswer(url, `status ${answer.status}`)
  // The resolver keeps the order of equally ranked hosts, so anybody who pays for many records could come first.
  const records = shuffled(listOf(url, answer)).slice(0, MAX_RECORDS)
  return {
    type: 'output-list',
    outputs: records.flatMap((record) => {
      const [beef, outputIndex] = [field(record, 'beef'), field(record, 'outputIndex')]
      const isRecord = isByteList(beef) && beef.length <= MAX_RECORD_BYTES && isVout(outputIndex)
      return isRecord ? [{ beef, outputIndex }] : []
    }),
  }
}

/** In random order (Fisher and Yates). */
function shuffled<Item>(items: readonly Item[]): Item[] {
  const all = [...items]
  for (let left = all.length; left > 1; left--) {
    const at = Math.floor(Math.random() * left)
    ;[all[left - 1], all[at]] = [all[at] as Item, all[left - 1] as Item]
  }
  return all
}

/** The longest URL of a host; longer ones are not hosts, and too long to quote. */
const MAX_URL_LENGTH = 300
/** The longest JSON answer that is parsed, in bytes: parsing takes ten times as much memory. */
const MAX_JSON_BYTES = 16 * 1024 * 1024

class LookupHost implements NameSource {
  /** The URL, without a slash at the end. */
  readonly index: string

  constructor(
    private readonly host: FoundHost,
    private readonly options: FetchOptions & { service: string; allowHttp: boolean },
  ) {
    this.index = host.url.slice(0, MAX_URL_LENGTH).replace(/\/+$/, '')
  }

  get isAskable(): boolean {
    const { host, options } = this
    if (host.url.length > MAX_URL_LENGTH || !URL.canParse(host.url)) return false
    return isEncrypted(host.url) || (options.allowHttp && host.url.startsWith('http:'))
  }

  async ask(name: string, bounds: AskBounds = {}): Promise<IndexReply[]> {
    const { host, index } = this
    try {
      const limits = withBounds(this.options, bounds)
      const budget = new FetchBudget(limits)
      const answer = await heeding(limits.signal, () => this.answer(name, budget, bounds))
      host.answered()
      return [{ index, ...answer }]
    } catch (error) {
      // The resolver ranks the host lower.
      host.failed(error)
      if (error instanceof SourceError) return [{ index, kind: 'failed', error }]
      throw error
    }
  }

  private async answer(
    name: string,
    budget: FetchBudget,
    { known: places, partBytes }: AskBounds,
  ): Promise<IndexAnswer> {
    const { index: url } = this
    if (!this.isAskable) throw notAsked(url)
    // Hosts that work around the SDK's reader send histories as JSON unless binary is requested in both ways.
    const headers = {
      'Content-Type': 'application/json',
      'X-Aggregation': 'yes',
      Accept: 'application/octet-stream, application/json;q=0.5',
    }
    const ask = async (query: object): Promise<FetchedAnswer> => {
      const body = JSON.stringify({ service: this.options.service, query: { name, history: true, ...query } })
      return await budget.fetch(`${url}/lookup`, { method: 'POST', headers, body })
    }
    const verified = [...(places?.nodes ?? []), places?.origin, places?.tip].flatMap((each) =>
      each === undefined ? [] : [formatOutpoint(each)],
    )
    const known = verified.length > 0 ? { known: verified } : {}
    const answer = await wholeOrPart({ partBytes, budget }, async (maxBytes) => {
      const part = maxBytes === undefined ? known : { ...known, maxBytes }
      const first = await ask(part)
      // A host that cannot leave anything out refuses such a query.
      return first.status === 400 && Object.keys(part).length > 0 ? await ask({}) : first
    })
    if (answer.status !== 200) throw notCaughtUp(url, answer) ?? badAnswer(url, `status ${answer.status}`)
    const outputs =
      answer.contentType === 'application/octet-stream' ? readAggregate(url, answer) : readList(url, answer)
    const [output] = outputs
    if (output === undefined) return { kind: 'not-claimed' }
    if (outputs.length > 1) throw badAnswer(url, 'more than one output for one name')
    const { beef, ...tip } = output
    // A host that names an output as the current one says that it is unspent.
    return { kind: 'claimed', evidence: { form: 'history', beef, tip }, spent: false }
  }
}

function isEncrypted(url: string): boolean {
  return url.startsWith('https:')
}

function notAsked(url: string): SourceError {
  return new SourceError('UNREACHABLE', `${url.slice(0, MAX_URL_LENGTH)} is not asked: its URL is not https`)
}

interface AnsweredOutput {
  beef: Uint8Array
  txid?: string
  vout: number
}

/** More outputs than an answer about one name can have. */
const MAX_OUTPUTS = 100

/** Reads the binary form of an answer (`X-Aggregation`): outputs with their contexts, then one BEEF. */
export function readAggregate(url: string, { body }: FetchedAnswer): AnsweredOutput[] {
  const cursor = new ByteCursor(body, (message) => badAnswer(url, message))
  const outputs: { txid: string; vout: number }[] = []
  for (let left = cursor.count('outputs', MAX_OUTPUTS); left > 0; left--) {
    // In display order, as the SDK reads it.
    const txid = toHex(cursor.take(32))
    const vout = cursor.varint()
    cursor.take(cursor.varint())
    outputs.push({ txid, vout })
  }
  const beef = body.subarray(cursor.at)
  return outputs.map((output) => ({ ...output, beef }))
}

/** Reads the JSON form: each output with its own BEEF, whose subject holds it. */
function readList(url: string, answer: FetchedAnswer): AnsweredOutput[] {
  if (answer.body.length > MAX_JSON_BYTES)
    throw new SourceError('TOO_LARGE', `${url} answered more than ${MAX_JSON_BYTES} bytes of JSON`)
  const outputs = listOf(url, answer)
  if (outputs.length > 1) throw badAnswer(url, 'more than one output for one name')
  return outputs.map((output) => {
    const [beef, vout] = [field(output, 'beef'), field(output, 'outputIndex')]
    if (!isVout(vout)) throw badAnswer(url, 'an output without its index')
    if (!isByteList(beef)) throw badAnswer(url, 'an output without its BEEF')
    return { beef: Uint8Array.from(beef), vout }
  })
}

/** The outputs in an answer, not validated yet. */
function listOf(url: string, { body }: FetchedAnswer): unknown[] {
  const answer = readJson(body)
  const outputs = field(answer, 'outputs')
  if (field(answer, 'type') !== 'output-list' || !Array.isArray(outputs))
    throw badAnswer(url, 'no list of outputs')
  return outputs
}

function isVout(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= 0xffffffff
}

function isByteList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 0xff)
}

function badAnswer(url: string, reason: string): SourceError {
  return new SourceError('BAD_ANSWER', `${url} gave no valid lookup answer: ${reason}`)
}
