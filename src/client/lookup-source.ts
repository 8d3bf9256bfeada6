import {
  type LookupAnswer,
  type LookupQuestion,
  LookupResolver,
  type LookupResolverConfig,
  type OverlayLookupFacilitator,
} from '@bsv/sdk'
import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { LOOKUP_SERVICES } from '../../backend/src/protocol/profile.js'
import {
  DEFAULT_TIMEOUT,
  FetchBudget,
  type FetchedAnswer,
  type FetchOptions,
  field,
  readJson,
  unlessAborted,
  withBounds,
} from './bounded-fetch.js'
import { SourceError } from './errors.js'
import type { AskBounds, IndexAnswer, IndexReply, NameSource } from './name-source.js'

/** Which hosts are asked, and how. */
export interface LookupNameSourceOptions extends FetchOptions {
  /** How the SDK's resolver finds hosts: its network, trackers, overrides. */
  resolver?: Omit<LookupResolverConfig, 'facilitator'>
  /** The lookup service; `ls_names` unless set. */
  service?: string
  /** How many of the hosts that are found are asked, those first that have answered best; 8 unless set. */
  maxHosts?: number
}

const DEFAULT_MAX_HOSTS = 8

/**
 * The hosts that the SDK's `LookupResolver` finds for a lookup service (SLAP, BRC-101), each an index of its own.
 *
 * The resolver finds, ranks and passes over hosts; what trackers and hosts answer is read here. It would keep one of two
 * answers of the same output, whichever host lied; and its own reader reads without end, follows redirects, and cuts an
 * answer down to what a proven tip needs for itself, so that nothing of the history is left.
 */
export class LookupNameSource implements NameSource {
  /** The lookup service: what the source is called in reports where no host is found. */
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

  /** Asks the hosts that are found, all at once; each may answer its share of `maxBytes`. */
  async ask(name: string, bounds: AskBounds = {}): Promise<IndexReply[]> {
    const { timeout, maxBytes, signal } = withBounds(this.options, bounds)
    const start = performance.now()
    const found = await this.find(bounds).catch((error: unknown) => {
      if (error instanceof SourceError) return error
      throw error
    })
    if (found instanceof SourceError) return [{ index: this.index, kind: 'failed', error: found }]
    const each: AskBounds = {
      timeout: Math.max(0, timeout - (performance.now() - start)),
      maxBytes: Math.floor(maxBytes / found.length),
      ...(signal && { signal }),
    }
    return (await Promise.all(found.map((host) => host.ask(name, each)))).flat()
  }

  /**
   * The hosts to ask, the best ranked first. A host whose URL may not be asked comes last.
   *
   * @throws SourceError `UNREACHABLE` where there are none, or all of them are being passed over; the reason of the signal.
   */
  async find({ signal }: AskBounds = {}): Promise<NameSource[]> {
    const finding = this.hosts()
    const hosts = await (signal === undefined ? finding : unlessAborted(finding, signal))
    // As the SDK has it: plain HTTP is for a network of one's own.
    const allowHttp = this.options.resolver?.networkPreset === 'local'
    const sources = hosts.map(
      (host) => new LookupHost(host, { ...this.options, service: this.index, allowHttp }),
    )
    const isFirst = (source: LookupHost, at: number): boolean =>
      sources.findIndex(({ index }) => index === source.index) === at
    return sources
      .filter(isFirst)
      .sort((one, other) => Number(other.isAskable) - Number(one.isAskable))
      .slice(0, this.maxIndexes)
  }

  private async hosts(): Promise<FoundHost[]> {
    const question = { service: this.index, query: {} }
    const collected = this.facilitator.collect(question)
    try {
      // The resolver's own answer never comes: it waits for hosts that nobody asks.
      await Promise.race([collected, this.resolver.query(question)])
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new SourceError('UNREACHABLE', `no host answers ${this.index}: ${reason}`, { cause })
    }
    return await collected
  }
}

/** A host that the resolver would ask. What becomes of asking it counts for or against it the next time. */
interface FoundHost {
  url: string
  answered(): void
  failed(error: unknown): void
}

/** More hosts than a service has. */
const MAX_FOUND_HOSTS = 1000

/** Asks trackers for the resolver. Hosts it does not ask, but keeps, in the order of their rank. */
class HostCollector implements OverlayLookupFacilitator {
  private readonly collecting = new WeakMap<object, (host: FoundHost) => void>()
  private readonly trackers: Trackers

  constructor(options: LookupNameSourceOptions) {
    this.trackers = new Trackers(options)
  }

  /** The hosts that the resolver will ask a question. */
  async collect(question: LookupQuestion): Promise<FoundHost[]> {
    const found: FoundHost[] = []
    return await new Promise((resolve) => {
      this.collecting.set(question, (host) => {
        if (found.length < MAX_FOUND_HOSTS) found.push(host)
        // The resolver asks all hosts in one go, before anything that waits goes on.
        resolve(found)
      })
    })
  }

  async lookup(url: string, question: LookupQuestion, timeout?: number): Promise<LookupAnswer> {
    const add = this.collecting.get(question)
    if (add === undefined) return await this.trackers.ask(url, question, timeout)
    return await new Promise((resolve, reject) => {
      add({ url, answered: () => resolve({ type: 'output-list', outputs: [] }), failed: reject })
    })
  }
}

/** The longest answer of a tracker that is read, in bytes; with its record, a host takes some 5 KB. */
const MAX_TRACKER_BYTES = 2 * 1024 * 1024
/** The most records of a tracker that are looked at, and the longest BEEF among them: the SDK reads all in one go. */
const MAX_RECORDS = 200
const MAX_RECORD_BYTES = 128 * 1024

/** Which hosts there are, as SLAP trackers say. */
class Trackers {
  private readonly timeout: number
  private readonly allowHttp: boolean

  constructor(private readonly options: LookupNameSourceOptions) {
    // Time is left to ask the hosts.
    this.timeout = (options.timeout ?? DEFAULT_TIMEOUT) / 2
    this.allowHttp = options.resolver?.networkPreset === 'local'
  }

  /**
   * As JSON, for of a binary answer the SDK makes a BEEF for each record that holds all of the others.
   *
   * @throws SourceError as fetchBounded, and `BAD_ANSWER`.
   */
  async ask(url: string, question: LookupQuestion, timeout = this.timeout): Promise<LookupAnswer> {
    requireEncryption(url, this.allowHttp)
    const budget = new FetchBudget({
      timeout: Math.min(timeout, this.timeout),
      maxBytes: MAX_TRACKER_BYTES,
      ...(this.options.fetch && { fetch: this.options.fetch }),
    })
    const answer = await budget.fetch(`${url}/lookup`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify(question),
    })
    if (answer.status !== 200) throw badAnswer(url, `status ${answer.status}`)
    const records = listOf(url, answer).slice(0, MAX_RECORDS)
    return {
      type: 'output-list',
      outputs: records.flatMap((record) => {
        const [beef, outputIndex] = [field(record, 'beef'), field(record, 'outputIndex')]
        const isRecord = isByteList(beef) && beef.length <= MAX_RECORD_BYTES && isVout(outputIndex)
        return isRecord ? [{ beef, outputIndex }] : []
      }),
    }
  }
}

/** The longest URL of a host; others are no hosts, and too long to be shown. */
const MAX_URL_LENGTH = 300
/** The longest answer in JSON that is read as one, in bytes: it takes ten times as much memory. */
const MAX_JSON_BYTES = 16 * 1024 * 1024

/** One host of a lookup service. */
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
      const answer = await this.answer(name, new FetchBudget(withBounds(this.options, bounds)))
      host.answered()
      return [{ index, ...answer }]
    } catch (error) {
      // The resolver counts it against the host.
      host.failed(error)
      if (error instanceof SourceError) return [{ index, kind: 'failed', error }]
      throw error
    }
  }

  private async answer(name: string, budget: FetchBudget): Promise<IndexAnswer> {
    const { index: url, options } = this
    if (!this.isAskable) throw notAsked(url)
    // A host that knows what the SDK's reader does to histories gives JSON unless binary is asked for twice.
    const headers = {
      'Content-Type': 'application/json',
      'X-Aggregation': 'yes',
      Accept: 'application/octet-stream, application/json;q=0.5',
    }
    const body = JSON.stringify({ service: options.service, query: { name, history: true } })
    const answer = await budget.fetch(`${url}/lookup`, { method: 'POST', headers, body })
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

function isEncrypted(url: string): boolean {
  return url.startsWith('https:')
}

/** @throws SourceError `UNREACHABLE`. */
function requireEncryption(url: string, allowHttp: boolean): void {
  if (!isEncrypted(url) && !allowHttp) throw notAsked(url)
}

function notAsked(url: string): SourceError {
  return new SourceError('UNREACHABLE', `${url.slice(0, MAX_URL_LENGTH)} is not asked: it is no https URL`)
}

interface AnsweredOutput {
  beef: Uint8Array
  txid?: string
  vout: number
}

/** More outputs than an answer about one name can have. */
const MAX_OUTPUTS = 100

/** The binary form of an answer (`X-Aggregation`): outputs with their contexts, and one BEEF. */
export function readAggregate(url: string, { body }: FetchedAnswer): AnsweredOutput[] {
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
function readList(url: string, answer: FetchedAnswer): AnsweredOutput[] {
  if (answer.body.length > MAX_JSON_BYTES)
    throw new SourceError('TOO_LARGE', `${url} answers more than ${MAX_JSON_BYTES} bytes of JSON`)
  const outputs = listOf(url, answer)
  if (outputs.length > 1) throw badAnswer(url, 'more than one output for one name')
  return outputs.map((output) => {
    const [beef, vout] = [field(output, 'beef'), field(output, 'outputIndex')]
    if (!isVout(vout)) throw badAnswer(url, 'an output without its index')
    if (!isByteList(beef)) throw badAnswer(url, 'an output without its BEEF')
    return { beef: Uint8Array.from(beef), vout }
  })
}

/** The outputs that an answer lists, whatever they are. */
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
  return new SourceError('BAD_ANSWER', `${url} answers not as a lookup service does: ${reason}`)
}
