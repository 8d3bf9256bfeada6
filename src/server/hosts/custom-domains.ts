import { Resolver } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import { answeredWithin } from '../../../backend/src/graph/answered-within.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import {
  type ContentReference,
  PointerError,
  parseContentReference,
} from '../../../backend/src/protocol/outpoint.js'
import type { CustomDomains } from '../../gateway/hosts/host-content.js'
import { AnswerError } from '../../gateway/http/errors.js'

export interface TxtResolver {
  resolveTxt(name: string): Promise<string[][]>
}

export interface DnsDomainsOptions {
  resolver: TxtResolver
  lookupRate: number
  now?: () => number
}

const SECOND = 1000
const MINUTE = 60 * SECOND
/** How long an answer counts: what a domain shows, that it shows nothing, and that its servers failed. */
const FRESH = { found: 5 * MINUTE, none: MINUTE, failed: 10 * SECOND }
/** How long a domain keeps showing its last content while its servers fail, or while lookups are at their limit. */
const STALE = 24 * 60 * MINUTE
const MAX_LOOKUPS = 16
/** How many domains with content, and how many without, are remembered. */
const REMEMBERED = 10_000
/** How long one lookup may take, in milliseconds. */
const PATIENCE = 5 * SECOND
/** The time to retry after a failed lookup, in seconds. */
const RETRY = { 'Retry-After': '10' }

const PREFIX = '_ordfs.'
/** The longest name, by RFC 1035 2.3.4. */
const MAX_NAME = 253
/** At least two labels (RFC 1123 2.1). The last is not a number: that would be an address. */
const DOMAIN = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$/
/** Domains that public servers never resolve (RFC 6761, RFC 6762, RFC 7686, RFC 8375, and `internal` by ICANN). */
const PRIVATE = /\.(?:localhost|local|internal|arpa|onion|invalid)$/
/** The most records that are read, and the longest of ours: `ordfs=`, an outpoint of 75 characters and `:` with a sequence. */
const MAX_RECORDS = 100
const MAX_RECORD = 120
const TAGGED = /^ordfs=/i

interface Known {
  reference: ContentReference | undefined
  /** Until when the answer is fresh, and until when it serves if lookups fail. */
  until: number
  staleUntil: number
}

/**
 * Domains that say in a TXT record of `_ordfs.<domain>` what they show: `ordfs=<outpoint>[:seq]`, or the reference alone.
 *
 * Any stranger can send any Host, so lookups are bounded: answers are remembered, parallel requests for a domain share one lookup,
 * and lookups are limited per minute and in parallel. At the limit, domains keep showing their last content.
 */
export class DnsDomains implements CustomDomains {
  private readonly found = new LRUCache<string, Known>({ maxSize: REMEMBERED, sizeCalculation: () => 1 })
  private readonly none = new LRUCache<string, Known>({ maxSize: REMEMBERED, sizeCalculation: () => 1 })
  /** Until when no server of a failed domain is asked again. */
  private readonly failed = new LRUCache<string, number>({ maxSize: REMEMBERED, sizeCalculation: () => 1 })
  private readonly lookups = new Map<string, Promise<ContentReference | undefined>>()
  private running = 0
  private minute = 0
  private inMinute = 0

  constructor(private readonly options: DnsDomainsOptions) {}

  referenceOf(host: string): Promise<ContentReference | undefined> | ContentReference | undefined {
    if (PREFIX.length + host.length > MAX_NAME || !DOMAIN.test(host) || PRIVATE.test(host)) return undefined
    const now = this.now()
    const known = this.found.get(host) ?? this.none.get(host)
    if (known !== undefined && known.until > now) return known.reference
    const inProgress = this.lookups.get(host)
    if (inProgress !== undefined) return inProgress
    const stale = known?.reference !== undefined && known.staleUntil > now ? known.reference : undefined
    const hasFailed = (this.failed.get(host) ?? 0) > now
    if (hasFailed || !this.hasRoom(now)) {
      if (stale !== undefined) return stale
      throw hasFailed
        ? unanswered()
        : new AnswerError('NOT_READY', 'too many domains are being looked up; try again', { headers: RETRY })
    }
    const lookup = this.lookUp(host, stale).finally(() => this.lookups.delete(host))
    this.lookups.set(host, lookup)
    return lookup
  }

  private async lookUp(
    host: string,
    stale: ContentReference | undefined,
  ): Promise<ContentReference | undefined> {
    const { found, none, failed } = this
    try {
      const reference = await this.recordOf(host)
      const now = this.now()
      if (reference === undefined) found.delete(host)
      const kept = reference === undefined ? none : found
      const until = now + FRESH[reference === undefined ? 'none' : 'found']
      kept.set(host, { reference, until, staleUntil: now + STALE })
      return reference
    } catch (error) {
      failed.set(host, this.now() + FRESH.failed)
      if (stale !== undefined) return stale
      throw unanswered(error)
    }
  }

  private async recordOf(host: string): Promise<ContentReference | undefined> {
    this.running++
    const records = this.options.resolver
      .resolveTxt(PREFIX + host)
      .catch((error: unknown) => {
        if (isAbsent(error)) return []
        throw error
      })
      .finally(() => this.running--)
    const error = (): Error => new Error(`no answer within ${PATIENCE} ms`)
    return referenceIn(await answeredWithin(PATIENCE, () => records, { error }))
  }

  /** Whether another lookup may start now; if so, it is counted. */
  private hasRoom(now: number): boolean {
    const { lookupRate } = this.options
    const minute = Math.floor(now / MINUTE)
    if (minute !== this.minute) {
      this.minute = minute
      this.inMinute = 0
    }
    if (this.inMinute >= lookupRate || this.running >= MAX_LOOKUPS) return false
    this.inMinute++
    return true
  }

  private now(): number {
    return (this.options.now ?? monotonic)()
  }
}

/** The message omits the domain, which would make each one a new reason in the log. */
function unanswered(cause?: unknown): AnswerError {
  const message = 'the DNS servers of this domain do not say what it shows; try again'
  return new AnswerError('NOT_READY', message, { cause, headers: RETRY })
}

export function dnsResolver(servers: readonly string[]): TxtResolver {
  const resolver = new Resolver({ timeout: 2 * SECOND, tries: 2 })
  if (servers.length > 0) resolver.setServers(servers)
  return resolver
}

/** The reference in a domain's tagged records, or else in those that are nothing but a reference. Undefined if they differ. */
function referenceIn(records: readonly string[][]): ContentReference | undefined {
  const texts = records
    .slice(0, MAX_RECORDS)
    .map((parts) => parts.join(''))
    .filter(({ length }) => length <= MAX_RECORD)
    .map((text) => text.trim())
  const tagged = texts.filter((text) => TAGGED.test(text)).map((text) => text.replace(TAGGED, '').trim())
  const references = new Map<string, ContentReference>()
  for (const text of tagged.length > 0 ? tagged : texts) {
    const reference = readReference(text)
    if (reference !== undefined) references.set(JSON.stringify(reference), reference)
  }
  const [reference] = references.values()
  return references.size === 1 ? reference : undefined
}

function readReference(text: string): ContentReference | undefined {
  try {
    const reference = parseContentReference(text)
    return reference.pointer.kind === 'outpoint' ? reference : undefined
  } catch (error) {
    if (error instanceof PointerError) return undefined
    throw error
  }
}

function isAbsent(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOTFOUND' || code === 'ENODATA'
}
