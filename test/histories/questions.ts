import { isDeepStrictEqual } from 'node:util'
import type { ChainTracker } from '@bsv/sdk'
import { encodeAddress } from '../../backend/src/protocol/address.js'
import { readBeefFrame } from '../../backend/src/protocol/beef.js'
import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { verifyNameProof } from '../../src/client/verify-name.js'
import { ownerOf } from '../support/graph/owner-of.js'
import { verifyProvenance } from '../support/graph/provenance-verifier.js'
import { CONTENT_TYPES, KEYS } from '../support/graph/said-outputs.js'
import { type Answers, sha256 } from './answers.js'
import { type History, TEXTS } from './history.js'
import { type Answer, ask, type Differences, type Question } from './host.js'
import { burnsWithin, mintsBefore } from './model.js'

/** A host, and what it should answer. */
export interface Asked {
  url: string
  history: History
  answers: Answers
  /** The chain that proofs lead to. */
  tracker: ChainTracker & { isRoot(root: string, height: number): boolean }
  /** Asks a lookup service for outpoints, where `/lookup` is not of this package. */
  lookup?: ((service: string, query: object) => Promise<string[] | number>) | undefined
}

/** Those of some answers that are not the same. */
export function differencesOf(got: Record<string, unknown>, expected: Record<string, unknown>): Differences {
  // Absent and undefined are one.
  const plain = (value: unknown): unknown => (value === undefined ? value : JSON.parse(JSON.stringify(value)))
  const asked = [...new Set([...Object.keys(got), ...Object.keys(expected)])]
  return Object.fromEntries(
    asked
      .map((each) => [each, { got: plain(got[each]), expected: plain(expected[each]) }] as const)
      .filter(([, difference]) => !isDeepStrictEqual(difference.got, difference.expected)),
  )
}

/**
 * Asks about all that is in a history.
 *
 * @param options.everything Whether each route is asked about each output, and not only those that tell of many at once.
 */
export async function differences(
  asked: Asked,
  { everything }: { everything: boolean },
): Promise<Differences> {
  const reader = new Reader(asked)
  await askNames(reader)
  await askNameLookups(reader)
  await askTips(reader)
  await askBulk(reader)
  await askLists(reader)
  if (everything) {
    await askOrdinals(reader)
    await askHistories(reader)
    await askOrdinalLookups(reader)
    await askProofs(reader)
  }
  return reader.found
}

/**
 * What of an answer every host says alike that holds the same: not which of the proofs that there are it sends, nor what it knows of the
 * network. Undefined where that cannot be said.
 */
export function comparable({ path, body }: Question, answer: Answer): unknown {
  // What is not proven stands there in any order.
  if (path.startsWith('/svc/gateway/newest/')) return undefined
  if (answer.status !== 200) return answer.status
  if (path.startsWith('/content/')) return shownContent(answer)
  if (path.startsWith('/svc/gateway/stream/')) return shownStream(answer)
  if (/^\/svc\/(gateway\/provenance|names\/proof)\//.test(path)) return answer.status
  if (path.startsWith('/svc/gateway/history/')) {
    const page = json(answer) as { steps?: unknown[] }
    return { ...page, steps: page.steps?.map(withoutTime) }
  }
  if (path === '/svc/gateway/counts') return namesAndInscriptions(answer)
  if (path !== '/lookup') return json(answer)
  const { outputs, txids } = readOutputs(answer.body)
  // A name has its proof and its history in the BEEF, of which there may be several.
  return String(body).includes('ls_names') ? outputs : { outputs, txids: txids.sort() }
}

const MISSING = 404
const BLOCKED = 451
/** Without the block as of which it is, and what the network has: those are not of the model. */
const json = ({ body }: Answer): unknown => {
  const value: unknown = JSON.parse(body.toString('utf8'))
  const tip = typeof value === 'object' && value !== null && 'tip' in value ? value.tip : undefined
  for (const each of [value, tip])
    if (typeof each === 'object' && each !== null && !Array.isArray(each))
      for (const field of ['asOf', 'proven', 'seen']) delete (each as Record<string, unknown>)[field]
  return value
}

class Reader {
  readonly found: Differences = {}

  constructor(readonly asked: Asked) {}

  get answers(): Answers {
    return this.asked.answers
  }

  async ask(question: Question): Promise<Answer> {
    return await ask(this.asked.url, question)
  }

  get names(): string[] {
    const { transactions } = this.asked.history
    return [...new Set(transactions.flatMap(({ mint }) => mint?.name ?? [])), 'ab', 'zz'].sort()
  }

  get outpoints(): string[] {
    return this.asked.history.subjects.flatMap(({ said, outpoint }) => said.map((_, vout) => outpoint(vout)))
  }

  /** Holds an answer against what is wanted: a status, or what is shown of a 200. */
  async get(
    question: Question | string,
    options: { as?: string; shown?: (answer: Answer) => unknown; expected: unknown },
  ): Promise<Answer> {
    const asked = typeof question === 'string' ? { path: question } : question
    const { as = asked.path, shown = json, expected } = options
    const answer = await this.ask(asked)
    this.compare(as, answer.status === 200 ? shown(answer) : answer.status, expected)
    return answer
  }

  /** All rows of a list, a page after the other. @param options.next The parameter that takes the `next` of a page. */
  async walk(path: string, { list, next }: { list: string; next: string }): Promise<ListRow[]> {
    const rows: ListRow[] = []
    for (let more = ''; ; ) {
      const answer = await this.ask({ path: path + more })
      this.compare(`the status of ${path}${more}`, answer.status, 200)
      if (answer.status !== 200) return rows
      const page = json(answer) as Record<string, unknown>
      rows.push(...(page[list] as ListRow[]))
      if (page.next === undefined) return rows
      more = `&${next}=${page.next}`
    }
  }

  /** Asks `/lookup`; the BEEF holds what is found, and only what counts. */
  async lookup(service: string, query: object, expected: unknown): Promise<void> {
    const as = `${service} ${JSON.stringify(query)}`
    this.compare(as, await this.outputs(service, query), expected)
  }

  /** The outputs of a list, a page after the other: a page is limited in bytes, so a shorter one need not be the last. */
  async lookupPages(
    service: string,
    query: object,
    list: { expected: string[]; after(outpoint: string): string },
  ): Promise<void> {
    const found: string[] = []
    for (let more = {}; ; more = { after: list.after(found.at(-1) ?? '') }) {
      const page = await this.outputs(service, { ...query, ...more })
      if (!Array.isArray(page))
        return this.compare(`${service} ${JSON.stringify(query)}`, page, list.expected)
      found.push(...page)
      if (page.length === 0 || found.length >= list.expected.length) break
    }
    this.compare(`${service} ${JSON.stringify(query)}`, found, list.expected)
  }

  private async outputs(service: string, query: object): Promise<string[] | number> {
    const { lookup } = this.asked
    if (lookup !== undefined) return await lookup(service, query)
    const as = `${service} ${JSON.stringify(query)}`
    const body = JSON.stringify({ service, query })
    const answer = await this.ask({ path: '/lookup', body, headers: { 'X-Aggregation': 'yes' } })
    if (answer.status !== 200) return answer.status
    const { outputs, txids } = readOutputs(answer.body)
    const wrong = txids.filter((txid) => !this.answers.decision.counts.has(txid))
    const missing = outputs.filter((each) => !txids.includes(each.slice(0, 64)))
    this.compare(`${as}: its BEEF`, { wrong, missing }, { wrong: [], missing: [] })
    return outputs
  }

  compare(as: string, got: unknown, expected: unknown): void {
    Object.assign(this.found, differencesOf({ [as]: got }, { [as]: expected }))
  }

  /** What is wanted of an output, by whether it or what leads on from it is blocked. */
  unlessBlocked(outpoints: (string | undefined)[], expected: unknown): unknown {
    if (outpoints.some((each) => each !== undefined && this.answers.isBlocked(each))) return BLOCKED
    return expected ?? MISSING
  }
}

async function askNames(reader: Reader): Promise<void> {
  const { answers, names, outpoints } = reader
  for (const name of names) {
    const origin = answers.originOf(name)
    const node = answers.longestNode(name)
    const unlessBlocked = (more: (string | undefined)[], expected: unknown): unknown =>
      answers.isBlockedName(name) ? BLOCKED : reader.unlessBlocked(more, expected)
    await reader.get(`/svc/names/origin/${name}`, {
      expected: unlessBlocked([origin], origin && { name, outpoint: origin }),
    })
    await reader.get(`/svc/names/mine/${name}`, {
      expected: unlessBlocked([node?.outpoint], node?.domain === name ? undefined : node),
    })
    const step = origin === undefined ? undefined : answers.stepOf(origin, -1)
    const live = origin === undefined ? undefined : answers.liveNode(name)
    await reader.get(`/svc/names/${name}`, {
      expected: unlessBlocked([origin, step?.outpoint, step?.content, live], nameRecord(answers, name)),
    })
  }
  const listed = (prefix: string) => answers.names.filter((each) => each.name.startsWith(prefix))
  await reader.get('/svc/names', { expected: { names: listed('') } })
  await reader.get('/svc/names?prefix=a', { expected: { names: listed('a') } })
  const [first, second] = listed('')
  await reader.get('/svc/names?limit=1', {
    expected: { names: first ? [first] : [], ...(second && { next: first?.name }) },
  })
  await reader.get(
    { path: '/svc/names/origins', body: JSON.stringify(outpoints) },
    {
      expected: Object.fromEntries(
        outpoints.map((each) => [each, answers.origins.has(each) && !answers.isBlocked(each)]),
      ),
    },
  )
}

function nameRecord(answers: Answers, name: string): unknown {
  const origin = answers.originOf(name)
  const step = origin === undefined ? undefined : answers.stepOf(origin, -1)
  if (origin === undefined) return undefined
  return {
    name,
    origin,
    ...(step && {
      tip: {
        outpoint: step.outpoint,
        owner: addressOf(answers, step.outpoint),
        script: toHex(answers.said(step.outpoint).script),
        spent: answers.spenderOf(step.outpoint) !== undefined,
      },
      sequence: step.sequence,
      map: step.map,
    }),
    node: answers.liveNode(name),
    height: answers.heightOf(origin.slice(0, 64)),
  }
}

function addressOf(answers: Answers, outpoint: string): string | undefined {
  const { owner } = answers.said(outpoint)
  return owner === undefined ? undefined : encodeAddress(owner, 'main')
}

const SEQUENCES = [undefined, -2, -1, 0, 1, 2]

async function askOrdinals(reader: Reader): Promise<void> {
  const { answers, outpoints } = reader
  for (const each of outpoints) {
    for (const sequence of SEQUENCES) {
      const asked = sequence === undefined ? each : `${each}:${sequence}`
      const places = placesOf(answers, each, sequence)
      await reader.get(`/content/${asked}`, {
        shown: shownContent,
        expected: reader.unlessBlocked([each, ...places], contentOf(answers, each, sequence)),
      })
    }
    const stream = answers.streamOf(each)
    const origin = answers.stepOf(each, -2)?.origin
    await reader.get(`/svc/gateway/stream/${each}`, {
      shown: shownStream,
      expected: reader.unlessBlocked(
        [each, ...(stream?.chunks ?? [])],
        stream && {
          type: stream.contentType,
          // A blocked one is not reported.
          origin: origin !== undefined && answers.isBlocked(origin) ? undefined : origin,
          body: stream.chunks.map((chunk) => bodyOf(answers, chunk)).join(''),
        },
      ),
    })
  }
  for (const { txid } of reader.asked.history.subjects) {
    const first = answers.firstContentOf(txid)
    const expected = first && contentOf(answers, first, undefined)
    await reader.get(`/content/${txid}`, {
      shown: shownContent,
      expected: reader.unlessBlocked([first], expected),
    })
  }
}

function shownStream({ headers, body }: Answer): unknown {
  return {
    type: headers['content-type'],
    origin: headers['x-origin'],
    body: body.toString('utf8'),
  }
}

/** Where an ordinal stands at a step, and what it shows there. */
function placesOf(answers: Answers, outpoint: string, sequence: number | undefined): string[] {
  const step = sequence === undefined ? undefined : answers.stepOf(outpoint, sequence)
  return step === undefined ? [] : [step.outpoint, step.content]
}

function bodyOf(answers: Answers, outpoint: string): string {
  return Buffer.from(answers.said(outpoint).content?.body ?? []).toString('utf8')
}

function shownContent({ headers, body }: Answer): unknown {
  const map = headers['x-map']
  return {
    body: body.toString('utf8'),
    type: headers['content-type'],
    outpoint: headers['x-outpoint'],
    origin: headers['x-origin'],
    sequence: headers['x-ord-seq'],
    map: map === undefined ? {} : JSON.parse(String(map)),
    parent: headers['x-parent'],
    cache: headers['cache-control'],
  }
}

/** What is known of an output by itself, or of its ordinal at a step; undefined where that is not here. */
function knownOf(answers: Answers, outpoint: string, sequence: number | undefined) {
  if (sequence === undefined) {
    if (!answers.held.has(outpoint)) return undefined
    return { at: outpoint, step: undefined, ...answers.alone(outpoint) }
  }
  const step = answers.stepOf(outpoint, sequence)
  return step && { at: step.outpoint, step, content: step.content, parent: step.parent, map: step.map }
}

function contentOf(answers: Answers, outpoint: string, sequence: number | undefined): unknown {
  const known = knownOf(answers, outpoint, sequence)
  if (known?.content === undefined) return undefined
  const { at, step, content, map, parent } = known
  const isFixed = sequence === undefined || answers.heightOf(at.slice(0, 64)) !== undefined
  return {
    body: bodyOf(answers, content),
    type: answers.said(content).content?.contentType,
    outpoint: at,
    origin: step?.origin,
    sequence: step && String(step.sequence),
    map,
    parent,
    cache: sequence === -1 ? 'no-cache' : `public, max-age=${isFixed ? '31536000, immutable' : '60'}`,
  }
}

function metadataOf(answers: Answers, outpoint: string, sequence: number | undefined): unknown {
  const known = knownOf(answers, outpoint, sequence)
  if (known === undefined) return undefined
  const { at, step, content: contentOutpoint, map, parent } = known
  const content = contentOutpoint === undefined ? undefined : answers.said(contentOutpoint).content
  return {
    outpoint: at,
    ...(step && { origin: step.origin, sequence: step.sequence, tip: step.tip }),
    ...(content && {
      contentOutpoint,
      contentType: content.contentType,
      contentLength: content.body.length,
      sha256: sha256(content.body),
    }),
    map,
    parent,
    claimedParent: answers.said(contentOutpoint ?? at).claimedParent,
    satoshis: answers.said(at).satoshis,
    owner: addressOf(answers, at),
    spent: answers.spenderOf(at) !== undefined,
    height: answers.heightOf(at.slice(0, 64)),
  }
}

const MOST_AT_ONCE = 100

/** Metadata of everything, a hundred at once, and one by one of the first outputs. */
async function askBulk(reader: Reader): Promise<void> {
  const { answers, outpoints } = reader
  const asked = outpoints.flatMap((outpoint) =>
    SEQUENCES.map((sequence) => ({
      asked: sequence === undefined ? outpoint : `${outpoint}:${sequence}`,
      expected: reader.unlessBlocked(
        [outpoint, ...placesOf(answers, outpoint, sequence)],
        metadataOf(answers, outpoint, sequence),
      ),
    })),
  )
  for (let at = 0; at < asked.length; at += MOST_AT_ONCE) {
    const page = asked.slice(at, at + MOST_AT_ONCE)
    const body = JSON.stringify(page.map((each) => each.asked))
    const answer = await reader.ask({ path: '/svc/gateway/metadata', body })
    if (answer.status !== 200) reader.compare(`metadata of many, from ${at}`, answer.status, 200)
    const records = answer.status === 200 ? (json(answer) as Record<string, unknown>) : {}
    for (const { asked: each, expected } of page) {
      const isHere = expected !== MISSING && expected !== BLOCKED
      reader.compare(`metadata of ${each}, among many`, records[each], isHere ? expected : null)
    }
  }
  for (const { asked: each, expected } of asked.slice(0, 24))
    await reader.get(`/svc/gateway/metadata/${each}`, { expected })
}

/** How many rows a page of a list has. */
const ROWS_A_PAGE = 3

/** What is newest, a page at a time, how much there is, and the tree. */
async function askLists(reader: Reader): Promise<void> {
  const { answers } = reader
  const lists = { names: answers.origins.keys(), inscriptions: answers.inscribed }
  for (const [list, outpoints] of Object.entries(lists)) {
    const rows = await reader.walk(`/svc/gateway/newest/${list}?limit=${ROWS_A_PAGE}`, {
      list,
      next: 'after',
    })
    const isProven = ({ height }: ListRow): boolean => height !== undefined
    const unproven = rows.slice(0, rows.findIndex(isProven) === -1 ? rows.length : rows.findIndex(isProven))
    const expected = answers.newest(outpoints)
    reader.compare(
      `newest ${list}`,
      {
        unproven: unproven.map(({ outpoint }) => outpoint).sort(),
        proven: rows.slice(unproven.length).map(({ outpoint, height }) => ({ outpoint, height })),
      },
      {
        unproven: expected.unproven.sort(),
        proven: expected.proven.map((outpoint) => ({
          outpoint,
          height: answers.heightOf(outpoint.slice(0, 64)),
        })),
      },
    )
  }
  await reader.get('/svc/gateway/counts', {
    shown: namesAndInscriptions,
    expected: { names: answers.origins.size, inscriptions: answers.inscribed.length },
  })
  for (const domain of ['', ...reader.names]) {
    const live = answers.liveNode(domain)
    const children = answers.childNodes(domain)
    const isBlocked = answers.isBlockedName(domain) || (live !== undefined && answers.isBlocked(live))
    await reader.get(domain === '' ? '/svc/gateway/tree' : `/svc/gateway/tree/${domain}`, {
      shown: (answer) => {
        const { free: _, ...tree } = json(answer) as Record<string, unknown>
        return tree
      },
      expected: isBlocked
        ? BLOCKED
        : live === undefined && children.length === 0
          ? MISSING
          : { domain, outpoint: live, children },
    })
  }
}

/** How many transactions there are is another question to each store: some keep apart what nobody needs. */
function namesAndInscriptions(answer: Answer): unknown {
  const { names, inscriptions } = json(answer) as Record<string, unknown>
  return { names, inscriptions }
}

interface ListRow {
  outpoint: string
  height?: number
}

/** Each ordinal's life from both ends. */
async function askHistories(reader: Reader): Promise<void> {
  const { answers, outpoints } = reader
  for (const outpoint of outpoints) {
    const origin = answers.stepOf(outpoint, -2)?.origin
    const run = answers.lineage(outpoint)
    const steps = run.slice(run.indexOf(origin ?? '')).map((at, sequence) => stepOf(answers, at, sequence))
    for (const order of ['oldest', 'newest']) {
      const path = `/svc/gateway/history/${outpoint}?order=${order}&limit=${ROWS_A_PAGE}`
      if (answers.isBlocked(outpoint) || origin === undefined)
        await reader.get(path, { expected: reader.unlessBlocked([outpoint], undefined) })
      else {
        const rows = await reader.walk(path, { list: 'steps', next: 'from' })
        reader.compare(path, rows.map(withoutTime), order === 'oldest' ? steps : steps.toReversed())
      }
    }
  }
}

/** The time of its block is there if the host has block headers. */
function withoutTime(row: unknown): unknown {
  const { time: _, ...others } = row as Record<string, unknown>
  return others
}

function stepOf(answers: Answers, outpoint: string, sequence: number): unknown {
  const { content, parent, map } = answers.said(outpoint)
  const height = answers.heightOf(outpoint.slice(0, 64))
  if (answers.isBlocked(outpoint)) return { sequence, outpoint, hasMap: false, blocked: true, height }
  return {
    sequence,
    outpoint,
    owner: addressOf(answers, outpoint),
    ...(content && {
      contentType: content.contentType,
      contentLength: content.body.length,
      sha256: sha256(content.body),
    }),
    parent,
    hasMap: map !== undefined,
    height,
  }
}

async function askNameLookups(reader: Reader): Promise<void> {
  const { answers, names, outpoints } = reader
  for (const name of names) {
    const origin = answers.originOf(name)
    const current = origin === undefined ? undefined : answers.currentOf(origin)
    const shown = current === undefined ? [] : placesOf(answers, current, -1)
    const node = answers.longestNode(name)
    const toMine = node?.domain === name ? undefined : node?.outpoint
    const live = answers.liveNode(name)
    const ask = async (query: object, places: (string | undefined)[], found: string | undefined) => {
      const expected = reader.unlessBlocked(places, found === undefined ? [] : [found])
      await reader.lookup('ls_names', query, answers.isBlockedName(name) ? BLOCKED : expected)
    }
    await ask({ name }, [origin, current, ...shown], current)
    await ask({ origin: name }, [origin], origin)
    await ask({ mine: name }, [node?.outpoint], toMine)
    await ask({ node: name }, [live], live)
  }
  const root = answers.liveNode('')
  const isRoot = reader.unlessBlocked([root], root === undefined ? [] : [root])
  await reader.lookup('ls_names', { node: '' }, isRoot)
  const listed = (prefix: string): string[] =>
    answers.names.filter((each) => each.name.startsWith(prefix)).map(({ outpoint }) => outpoint)
  const nameOf = (outpoint: string): string =>
    answers.names.find((each) => each.outpoint === outpoint)?.name ?? outpoint
  await reader.lookupPages('ls_names', { prefix: '' }, { expected: listed(''), after: nameOf })
  await reader.lookupPages('ls_names', { prefix: 'a', limit: 2 }, { expected: listed('a'), after: nameOf })
  const origins = new Set(listed(''))
  const asked = outpoints.filter((each) => origins.has(each))
  await reader.lookupPages('ls_names', { origins: outpoints }, { expected: asked, after: (each) => each })
}

async function askOrdinalLookups(reader: Reader): Promise<void> {
  const { answers, outpoints } = reader
  for (const outpoint of outpoints) {
    const held = answers.held.has(outpoint) ? [outpoint] : []
    await reader.lookup('ls_ordinals', { outpoint }, reader.unlessBlocked([outpoint], held))
    for (const seq of [-1, 0]) {
      const step = answers.stepOf(outpoint, seq)
      const places = [outpoint, ...placesOf(answers, outpoint, seq)]
      const expected = reader.unlessBlocked(places, step === undefined ? [] : [step.outpoint])
      await reader.lookup('ls_ordinals', { outpoint, seq }, expected)
    }
  }
}

/** What finds ordinals where they are now. */
async function askTips(reader: Reader): Promise<void> {
  const { answers } = reader
  const lookup = (query: object, expected: string[]): Promise<void> =>
    reader.lookupPages('ls_ordinals', query, { expected, after: (each) => each })
  for (const contentType of CONTENT_TYPES) {
    const shows = (content: string | undefined): boolean =>
      content !== undefined && answers.said(content).content?.contentType === contentType
    await lookup(
      { contentType },
      answers.tipsWhere((_, step) => shows(step?.content)),
    )
  }
  for (const key of KEYS) {
    const isOwned = (tip: string): boolean =>
      answers.spenderOf(tip) === undefined && answers.said(tip).owner === ownerOf(key)
    await lookup({ owner: encodeAddress(ownerOf(key), 'main') }, answers.tipsWhere(isOwned))
    for (const text of TEXTS) {
      const [name, value] = [`key ${key}`, `value ${text}`]
      const found = answers.tipsWhere((_, step) => [step?.map[name] ?? []].flat().includes(value))
      await lookup({ map: { [name]: value } }, found)
    }
  }
  for (const parent of answers.namedParents)
    await lookup(
      { parent },
      answers.tipsWhere((_, step) => step?.parent === parent),
    )
}

function readOutputs(body: Buffer): { outputs: string[]; txids: string[] } {
  const cursor = new ByteCursor(Uint8Array.from(body), (message) => new Error(message))
  const outputs = Array.from({ length: cursor.varint() }, () => {
    const txid = toHex(cursor.take(32))
    const vout = cursor.varint()
    cursor.take(cursor.varint())
    return `${txid}_${vout}`
  })
  const beef = readBeefFrame(Uint8Array.from(body.subarray(cursor.at)))
  return { outputs, txids: beef.transactions.map(({ raw }) => readTransaction(raw).txid) }
}

/** Provenance and proofs of names, checked as a wallet would. */
async function askProofs(reader: Reader): Promise<void> {
  const { answers, names, outpoints, asked } = reader
  const starts = [...answers.origins.keys()]
  for (const each of outpoints) {
    const path = answers.lineage(each)
    const isProvable = path.length > 0 && path.every((hop) => answers.isProven(hop.slice(0, 64)))
    const shown = ({ body }: Answer): unknown => {
      if (!isProvable) return 'unproven'
      try {
        return verifyProvenance(body, { isRoot: asked.tracker.isRoot, starts, more: true })
      } catch (error) {
        return String(error)
      }
    }
    const verified = { tip: path.at(-1), origin: answers.stepOf(each, -2)?.origin, path }
    const expected = path.length === 0 ? undefined : isProvable ? verified : 'unproven'
    await reader.get(`/svc/gateway/provenance/${each}`, {
      shown,
      expected: reader.unlessBlocked([each, ...placesOf(answers, each, -1)], expected),
    })
  }
  for (const name of names) {
    const origin = answers.originOf(name)
    const path = `/svc/names/proof/${name}`
    const answer = await reader.ask({ path })
    const expected = reader.unlessBlocked([origin], origin && 200)
    reader.compare(path, answer.status, answers.isBlockedName(name) ? BLOCKED : expected)
    if (answer.status !== 200 || origin === undefined || !answers.isProven(origin.slice(0, 64))) continue
    // Where no mint among its ancestors has spent a node, no client takes it for a proof; nor where a mint before it has lost its
    // block, and cannot be verified without.
    if (burnsWithin(asked.history, origin.slice(0, 64))) continue
    if (!mintsBefore(asked.history, origin.slice(0, 64)).every(({ txid }) => answers.isProven(txid))) continue
    const { deployment } = asked.history.chain
    const proof = Uint8Array.from(answer.body)
    const proven = await verifyNameProof({ proof, name, deployment, chainTracker: asked.tracker }).then(
      (shown) => formatOutpoint(shown.origin),
      String,
    )
    reader.compare(`${path}: what it proves`, proven, origin)
  }
}
