import type { NextFunction, Request, Response } from 'express'
import type { Dependency } from '../../../backend/src/graph/dependencies.js'
import { TIP } from '../../../backend/src/graph/records.js'
import { type Awaitable, whenReady } from '../../../backend/src/graph/yield-to-event-loop.js'
import { isHostLabel } from '../../../backend/src/protocol/host-label.js'
import {
  type ContentReference,
  formatOutpoint,
  type Outpoint,
} from '../../../backend/src/protocol/outpoint.js'
import type { ContentParts } from '../content/content.js'
import {
  ContentRedirect,
  decodedSegments,
  FRAMED_POLICY,
  flagsKey,
  flagsOf,
  sendRedirect,
} from '../content/content.js'
import { type ContentRoot, contentRoot } from '../content/content-root.js'
import { type Ahead, afterLong } from '../content/directory.js'
import type { TreeProgress } from '../http/as-of.js'
import { CACHE } from '../http/caching.js'
import { AnswerError, methodNotAllowed } from '../http/errors.js'
import type { Header } from '../http/send-body.js'
import { passingErrors, StoredResponse, sendStored } from '../http/stored-response.js'
import { namesHeaders, notCaughtUp } from '../http/tree-progress.js'
import type { ContentHosts, HostedRequest, HostTarget } from './content-hosts.js'

/** Finds out what other people's domains show, from their DNS records. */
export interface CustomDomains {
  /**
   * The content that a domain shows; undefined if it shows none.
   * @throws AnswerError if that cannot be found out now.
   */
  referenceOf(host: string): Promise<ContentReference | undefined> | ContentReference | undefined
}

export interface HostContentOptions {
  hosts: ContentHosts
  /** Answers below `/content/`, as on the service's own hosts. */
  content: (request: Request, response: Response, next: NextFunction) => unknown
  /** Answers below `/r/`, unless the host's content has an entry of that name. */
  recursion: (request: Request, response: Response, next: NextFunction) => unknown
  /** The `Content-Security-Policy` of active content, if any: each host is an origin of its own, without the sandbox. */
  policy: string | undefined
  /** If missing, domains show nothing. */
  domains?: CustomDomains | undefined
  hasPages: boolean
}

export type HostHandler = (
  hosted: HostedRequest,
  request: Request,
  response: Response,
  next: NextFunction,
) => void

interface Asked {
  request: Request
  read: Ahead | undefined
}

export function namePage(name: string): string {
  return `/name/${name}`
}

/** Labels for metrics: one for each kind of host, never the host itself. */
const ROUTES = Object.fromEntries(
  Object.entries({
    name: 'name host',
    outpoint: 'outpoint host',
    domain: 'custom domain',
    nothing: 'no host',
  } satisfies Record<HostTarget['kind'], string>).map(([kind, path]) => [kind, { path }]),
)

/**
 * A path below `/content/` that begins with an outpoint or a txid, as inscriptions refer to each other. Any other path is one
 * of the host's content, which may have a folder of that name.
 */
const REFERENCE = /^\/content\/[0-9a-f]{64}(?:[_.i:%/?]|$)/i

const RECURSION = 'r'

function unclaimed(
  name: string,
  { service, progress, hasPages }: { service: string; progress: TreeProgress; hasPages: boolean },
): AnswerError {
  if (progress.isCatchingUp) return notCaughtUp(progress.progress())
  const { asOf } = progress
  const mine = hasPages ? `${service}/mine?name=${name}` : undefined
  const command = `npx minetree mine ${name} --url ${service}`
  const message = `${name} is not claimed. ${mine === undefined ? 'To mine it, run' : `Mine it at ${mine}, or run`}: ${command}`
  return new AnswerError('NOT_FOUND', message, {
    data: { name, ...(mine && { mine }), ...(asOf && { asOf }) },
    headers: Object.fromEntries(namesHeaders(progress)),
  })
}

/** The host's content leaves this path to the recursion routes. */
class Recursion {
  readonly weight = 0
}

class HostAnswer {
  /** The last `Link` and the service it is for, which rarely changes. */
  private link = ''
  private linked: string | undefined

  constructor(
    readonly found: StoredResponse | ContentRedirect | Recursion,
    /** Paths of the service that prove the content, by link relation. */
    private readonly links: Readonly<Record<string, string>>,
    readonly dependsOn: readonly Dependency[],
    /** The path of the service to redirect to instead, if any. */
    readonly page?: string,
  ) {}

  linkTo(service: string): string {
    if (this.linked === service) return this.link
    this.linked = service
    const links = Object.entries(this.links)
    this.link = links.map(([relation, path]) => `<${service}${path}>; rel="${relation}"`).join(', ')
    return this.link
  }

  get weight(): number {
    return this.found.weight
  }
}

/**
 * Answers GET and HEAD on hosts: a name shows its ordinal at the tip, an outpoint its content, a domain what its DNS records
 * name. Paths, caching, ranges and errors are those of `/content/`. To browsers, each host is a separate origin, so content is
 * not sandboxed, and may install service workers.
 */
export function hostContent(
  { store, responses, answers, profile, progress }: ContentParts,
  { hosts, content, recursion, policy, domains, hasPages }: HostContentOptions,
): HostHandler {
  const isNameClaim = ({ output }: ContentRoot): boolean =>
    output.content.contentType === profile.nameContentType
  const namesPrefix = profile.namesPrefixes[0] ?? ''
  const gatewayPrefix = profile.gatewayPrefixes[0] ?? ''
  const framedPolicy = policy === undefined ? FRAMED_POLICY : `${policy}; ${FRAMED_POLICY}`

  const answerWith = (root: ContentRoot, { request, name, read }: Asked & { name?: string }): HostAnswer => {
    const links = {
      ...(name !== undefined && { proof: `${namesPrefix}/proof/${name}` }),
      provenance: `${gatewayPrefix}/provenance/${formatOutpoint(root.outpoint)}`,
    }
    const named: Header[] = name === undefined ? [] : [['X-Name', name]]
    const redirected: Header[] = [
      ['Cache-Control', CACHE.revalidate],
      ...Object.entries(root.headers),
      ['X-Outpoint', formatOutpoint(root.outpoint)],
      ...named,
    ]
    const answer = (found: HostAnswer['found'], page?: string): HostAnswer =>
      new HostAnswer(found, links, root.dependsOn, page)
    const elsewhere = new ContentRedirect(redirected, root.dependsOn, root.output.outpoint)
    // Nothing is shown yet but its mint.
    if (name !== undefined && hasPages && isNameClaim(root)) return answer(elsewhere, namePage(name))
    if (name !== undefined && !isHostLabel(name)) return answer(elsewhere)
    const segments = decodedSegments(request.path.split('/').slice(1))
    const [first = '', ...others] = segments
    if (first === RECURSION && others.length > 0 && !answers.files.has(root.output, first, read))
      return answer(new Recursion())
    const { raw, isMapAsked, framed } = flagsOf(request)
    const question = {
      isSite: true,
      segments,
      ...{ raw, isMapAsked },
      // Otherwise pages of one site could give each other access by setting `document.domain`.
      headers: [...named, ['Origin-Agent-Cluster', '?1']] satisfies Header[],
      policy: framed ? framedPolicy : policy,
      read,
    }
    return answer(answers.answer(root, question))
  }

  const ofName = (name: string, asked: Asked): HostAnswer => {
    const outpoint = store.names.originOf(name)
    if (outpoint === undefined)
      throw unclaimed(name, { service: hosts.serviceOf(asked.request), progress, hasPages })
    const root = contentRoot(store, { pointer: { kind: 'outpoint', outpoint }, sequence: TIP })
    return answerWith(root, { ...asked, name })
  }
  const ofOutpoint = (outpoint: Outpoint, asked: Asked): HostAnswer =>
    answerWith(contentRoot(store, { pointer: { kind: 'outpoint', outpoint } }), asked)
  const ofDomain = (reference: ContentReference, asked: Asked): HostAnswer => {
    const root = contentRoot(store, reference)
    // The domain's records may change.
    return answerWith({ ...root, cache: CACHE.revalidate }, asked)
  }

  /** @param key Identifies the host's content; no request target begins like it. */
  const cached = (
    key: string,
    [request, response]: [Request, Response],
    read: (asked: Asked) => HostAnswer,
  ): Awaitable<HostAnswer> =>
    afterLong(response, (long) =>
      responses.cachedOn(key, request, () => read({ request, read: long }), flagsKey),
    )

  const resolve = (
    target: Exclude<HostTarget, { kind: 'nothing' }>,
    exchange: [Request, Response],
  ): Awaitable<HostAnswer> => {
    switch (target.kind) {
      case 'name':
        return cached(target.name, exchange, (asked) => ofName(target.name, asked))
      case 'outpoint': {
        const { outpoint } = target
        return cached(`${formatOutpoint(outpoint)}.c`, exchange, (asked) => ofOutpoint(outpoint, asked))
      }
      case 'domain':
        return whenReady(domains?.referenceOf(target.host), (reference) => {
          if (reference === undefined) {
            const message = `this service has no such host, and no TXT record of _ordfs.${target.host} names an outpoint`
            throw new AnswerError('NOT_FOUND', message)
          }
          return cached(`${formatReference(reference)}.d`, exchange, (asked) => ofDomain(reference, asked))
        })
    }
  }

  const send = (
    answer: HostAnswer,
    [request, response, next]: [Request, Response, NextFunction],
  ): Promise<void> | void => {
    const { found } = answer
    if (found instanceof Recursion) {
      recursion(request, response, (error: unknown) =>
        next(error ?? new AnswerError('NOT_FOUND', 'there is no such path below /r/')),
      )
      return
    }
    const service = hosts.serviceOf(request)
    response.setHeader('Link', answer.linkTo(service))
    if (found instanceof StoredResponse) return sendStored({ request, response, stored: found })
    if (answer.page !== undefined) {
      response.set(Object.fromEntries(found.headers))
      response
        .status(302)
        .set('Location', service + answer.page)
        .end()
      return
    }
    const originOf = hosts.originOf.bind(hosts)
    sendRedirect({ request, response, redirect: found, originOf, below: request.path })
  }

  return (hosted, request, response, next) => {
    const { target } = hosted
    request.route = ROUTES[target.kind]
    passingErrors(() => {
      if (target.kind === 'nothing') throw target.error
      const { method, url } = request
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method, ['GET', 'HEAD'])
      if (!url.startsWith('/'))
        throw new AnswerError('NOT_FOUND', 'a host that shows content has no such path')
      if (REFERENCE.test(url)) {
        content(request, response, next)
        return
      }
      return whenReady(resolve(target, [request, response]), (answer) =>
        send(answer, [request, response, next]),
      )
    }, next)
  }
}

/** Converts a target in absolute form (RFC 9112 3.2.2) to its path: the host is known. */
export function toOriginForm(request: Request): void {
  if (request.url.startsWith('/')) return
  const path = request.url.replace(/^https?:\/\/[^/?#]*/i, '')
  request.url = path === '' || path.startsWith('?') ? `/${path}` : path
  request.originalUrl = request.url
}

function formatReference({ pointer, sequence }: ContentReference): string {
  const place = pointer.kind === 'outpoint' ? formatOutpoint(pointer.outpoint) : pointer.txid
  return sequence === undefined ? place : `${place}:${sequence}`
}
