import { isIP } from 'node:net'
import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import { outpointLabel, outpointOfLabel } from '../../../backend/src/protocol/host-label.js'
import { NAME_PATTERN } from '../../../backend/src/protocol/mine-node.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { AnswerError } from '../http/errors.js'

/** The label of the zone below which outpoints have their hosts. By itself it is the host of the name `c`. */
const OUTPOINT_ZONE = 'c'

export type HostTarget =
  | { kind: 'name'; name: string }
  | { kind: 'outpoint'; outpoint: Outpoint }
  /** A domain whose DNS records may say what it shows. */
  | { kind: 'domain'; host: string }
  | { kind: 'nothing'; error: Error }

export interface HostedRequest {
  target: HostTarget
  /** In lower case, without port and trailing dot. */
  host: string
}

export interface ContentHostsOptions {
  /** `GATEWAY_HOST`: names are hosts below it. If undefined, no name has one. */
  gatewayHost?: string | undefined
  publicUrl?: string | undefined
  /** Further hosts of the service; below `gatewayHost`, they show no name. */
  ownHosts: readonly string[]
  /** What other hosts are: the service too, domains that may show something, or nothing. */
  others: 'service' | 'domains' | 'nothing'
  path: string
  trustedProxies: number
}

/** An authority (RFC 3986 3.2) without user information: an IP literal or a host name, and a port. */
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[\w.~-]*)(:[0-9]{0,5})?$/i
/** The scheme and authority of a target in absolute form (RFC 9112 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
/** Longer than any valid host: a name has up to 255 characters, and so may the rest. */
const MAX_AUTHORITY = 520
/** How many parsed authorities are cached: parsing one takes longer than a lookup. */
const REMEMBERED = 2000

interface ReadAuthority {
  host: string
  /** As written, with its colon: empty for the default port of the scheme. */
  port: string
  /** Undefined for the service itself. */
  target: HostTarget | undefined
  /** Whether the settings name the host or a parent domain: then no proxy has replaced it. */
  isNamed: boolean
}

/**
 * Decides which hosts show content, and which belong to the service. This comes before everything else for every request: a
 * host that shows content has none of the service's routes.
 *
 * - `<name>.<GATEWAY_HOST>` shows a name, and `<label>.c.<GATEWAY_HOST>` an outpoint ({@link outpointLabel}).
 * - The service has GATEWAY_HOST itself, the host of its public URL, SERVICE_HOSTS, `localhost` and IP addresses.
 * - Any other host is the service's too, unless the settings name its hosts: SERVICE_HOSTS, or CUSTOM_DOMAINS, with which it is
 *   a domain that may show something. In a host of another engine, it is always the host's.
 */
export class ContentHosts {
  private readonly own: ReadonlySet<string>
  private readonly zone: string | undefined
  private readonly known = new LRUCache<string, ReadAuthority>({ max: REMEMBERED })

  constructor(private readonly options: ContentHostsOptions) {
    const { gatewayHost, publicUrl, ownHosts } = options
    const hosts = [...ownHosts.map(plainHost), ...(gatewayHost ? [gatewayHost] : [])]
    if (publicUrl !== undefined) hosts.push(plainHost(new URL(publicUrl).hostname))
    this.own = new Set(hosts)
    this.zone = gatewayHost && `.${gatewayHost}`
  }

  get isNeeded(): boolean {
    return this.zone !== undefined || this.options.others !== 'service'
  }

  /** The host that shows content and is the target of a request; undefined if the request is for the service. */
  read(request: Pick<Request, 'url' | 'headers' | 'rawHeaders'>): HostedRequest | undefined {
    if (hasSeveralHosts(request.rawHeaders)) return malformed('the request has more than one Host header')
    const read = this.authorityOf(request)
    if (read === undefined) return malformed('the Host of the request is malformed')
    const { target, host } = read
    return target && { target, host }
  }

  /** The URL of the service as the client of a request reaches it, with scheme and port, without a trailing slash. */
  serviceOf(request: OnTheWay): string {
    const { gatewayHost = 'localhost', publicUrl, path } = this.options
    if (publicUrl !== undefined) return publicUrl.replace(/\/+$/, '') + path
    return `${this.schemeOf(request)}://${gatewayHost}${this.authorityOf(request)?.port ?? ''}${path}`
  }

  /** The hosts, with ports, by which a browser may know the service: the requested one and the public one. */
  hostsOf(request: OnTheWay): string[] {
    const { publicUrl } = this.options
    const read = this.authorityOf(request)
    const hosts = [read && `${read.host}${read.port}`, publicUrl && new URL(publicUrl).host]
    return [...new Set(hosts.flatMap((host) => host || []))]
  }

  /** The origin of an outpoint, as the client reaches it; undefined if outpoints have no hosts. */
  originOf(request: OnTheWay, outpoint: Outpoint): string | undefined {
    const { gatewayHost } = this.options
    if (gatewayHost === undefined) return undefined
    const port = this.authorityOf(request)?.port ?? ''
    return `${this.schemeOf(request)}://${outpointLabel(outpoint)}.${OUTPOINT_ZONE}.${gatewayHost}${port}`
  }

  /**
   * The addresses of sites, based on the public URL or on how the client of a request reaches this host, with the placeholders
   * `{name}` and `{label}` ({@link outpointLabel}). Undefined if names have no hosts.
   */
  sitesOf(request: OnTheWay): { name: string; outpoint: string } | undefined {
    const { gatewayHost, publicUrl } = this.options
    if (gatewayHost === undefined) return undefined
    // The port in a client's Host may be empty.
    const { protocol, port } =
      publicUrl === undefined
        ? { protocol: `${this.schemeOf(request)}:`, port: this.authorityOf(request)?.port.slice(1) ?? '' }
        : new URL(publicUrl)
    const zone = `${gatewayHost}${port && `:${port}`}/`
    return { name: `${protocol}//{name}.${zone}`, outpoint: `${protocol}//{label}.${OUTPOINT_ZONE}.${zone}` }
  }

  private schemeOf(request: OnTheWay): string {
    return this.options.trustedProxies > 0 && request.secure ? 'https' : 'http'
  }

  /** The authority that a request is for; undefined if it is malformed. */
  private authorityOf({ url, headers }: Pick<Request, 'url' | 'headers'>): ReadAuthority | undefined {
    // The target wins over Host (RFC 9112 3.2.2).
    const absolute = url.startsWith('/') ? undefined : ABSOLUTE.exec(url)?.[1]
    const read = this.authority(absolute ?? headers.host ?? '')
    const forwarded = headers['x-forwarded-host']
    if (forwarded === undefined || this.options.trustedProxies === 0 || read?.isNamed === true) return read
    return this.authority(this.forwardedHost(String(forwarded)))
  }

  /** The host requested from the outermost trusted proxy: each proxy may append its own. */
  private forwardedHost(list: string): string {
    const hosts = list.split(',')
    return (hosts[Math.max(hosts.length - this.options.trustedProxies, 0)] ?? '').trim()
  }

  private authority(written: string): ReadAuthority | undefined {
    const known = this.known.get(written)
    if (known !== undefined) return known
    const [, name, port = ''] = written.length > MAX_AUTHORITY ? [] : (AUTHORITY.exec(written) ?? [])
    if (name === undefined) return undefined
    const host = plainHost(name)
    const isNamed = this.own.has(host) || (this.zone !== undefined && host.endsWith(this.zone))
    const read = { target: this.targetOf(host), isNamed, host, port: port === ':' ? '' : port }
    this.known.set(written, read)
    return read
  }

  private targetOf(host: string): HostTarget | undefined {
    if (this.own.has(host)) return undefined
    if (this.zone !== undefined && host.endsWith(this.zone))
      return targetBelow(host.slice(0, -this.zone.length))
    const { others } = this.options
    if (
      others === 'service' ||
      host === '' ||
      host === 'localhost' ||
      isIP(host.replace(/^\[|\]$/g, '')) !== 0
    )
      return undefined
    return others === 'domains'
      ? { kind: 'domain', host }
      : { kind: 'nothing', error: new AnswerError('NOT_FOUND', 'this service has no such host') }
  }
}

type OnTheWay = Pick<Request, 'secure' | 'url' | 'headers'>

function targetBelow(labels: string): HostTarget {
  const outpoint = labels.endsWith(`.${OUTPOINT_ZONE}`) ? labels.slice(0, -2) : undefined
  if (outpoint !== undefined) {
    const decoded = outpointOfLabel(outpoint)
    if (decoded !== undefined) return { kind: 'outpoint', outpoint: decoded }
    const message = 'the host is not an outpoint: 36 bytes in base 36 have 56 characters'
    return { kind: 'nothing', error: new AnswerError('BAD_OUTPOINT', message) }
  }
  if (NAME_PATTERN.test(labels)) return { kind: 'name', name: labels }
  const message = 'the host is not a name: a name has 1 to 255 characters of a-z 0-9 -'
  return { kind: 'nothing', error: new AnswerError('BAD_NAME', message) }
}

/** In lower case, without the trailing dot of a fully qualified name. */
function plainHost(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

function malformed(message: string): HostedRequest {
  return { target: { kind: 'nothing', error: new AnswerError('BAD_BODY', message) }, host: '' }
}

/** RFC 9112 3.2: a proxy may read the second Host, while Node reads the first. */
function hasSeveralHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}
