import { createHash } from 'node:crypto'
import { ORIGIN, TIP } from '../../backend/src/graph/graph-store.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { CHUNK_TYPE, type MapAnswer, type Said, saidAlong } from '../../test/support/graph/said-outputs.js'
import type { Decision } from './decision.js'
import type { Forest, ForestTransaction } from './forest.js'
import { type ForestModel, previousOf } from './model.js'

/** MAP as it is served. */
/** What is known of an ordinal at a step, or of an output alone. */
export interface StepAnswer {
  outpoint: string
  sequence: number
  origin: string
  content: string
  parent: string | undefined
  map: MapAnswer
  tip: boolean
}

/** What follows from what counts: everything that is to be answered, walked from the transactions each time. */
export class ForestAnswers {
  readonly decision: Decision
  private readonly forest: Forest
  /** What `tm_ordinals` holds of what counts. */
  readonly held: ReadonlySet<string>
  /** Genuine nodes, by outpoint. */
  readonly nodes = new Map<string, string>()
  /** Origins of genuine names, by outpoint. */
  readonly origins = new Map<string, string>()
  private readonly spenders = new Map<string, string>()
  private readonly known: (txid: string) => boolean
  private readonly next = new Map<string, string>()
  private readonly before = new Map<string, string | 'unknown' | undefined>()

  constructor(private readonly model: ForestModel) {
    const { forest, held, insertionOrder } = model
    this.forest = forest
    this.known = (txid) => insertionOrder.has(txid)
    this.decision = model.decision
    const counting = (outpoint: string): boolean => this.decision.counts.has(outpoint.slice(0, 64))
    this.held = new Set([...held[TOPICS.ordinals]].filter(counting))
    for (const outpoint of [...held[TOPICS.names]].filter(counting)) {
      const { mint } = this.transaction(outpoint)
      const { domain } = this.said(outpoint)
      if (domain !== undefined) this.nodes.set(outpoint, domain)
      else if (mint !== undefined) this.origins.set(outpoint, mint.name)
    }
    const isMint = (txid: string | undefined): boolean => this.nodes.has(`${txid}_0`)
    for (const txid of this.decision.counts) {
      // Beside a mint, what is none may count that spends the same node.
      const own = this.transaction(txid).spends.filter((spent) => !isMint(this.spenders.get(spent)))
      for (const spent of own) this.spenders.set(spent, txid)
    }
    for (const outpoint of this.held) {
      const previous = this.previousOf(outpoint)
      if (typeof previous === 'string' && !this.origins.has(outpoint)) this.next.set(previous, outpoint)
    }
  }

  said(outpoint: string): Said {
    const said = this.transaction(outpoint).said[voutOf(outpoint)]
    if (said === undefined) throw new Error(`no such output in the forest: ${outpoint}`)
    return said
  }

  /** The transaction that spends an outpoint and counts; of a node, only a mint that the topic admitted is one. */
  spenderOf(outpoint: string): string | undefined {
    const spender = this.spenders.get(outpoint)
    return this.nodes.has(outpoint) && !this.nodes.has(`${spender}_0`) ? undefined : spender
  }

  /** Whether anything that counts has an outpoint among its inputs, whatever stands there. */
  isInput(outpoint: string): boolean {
    return this.spenders.has(outpoint)
  }

  /** The SHA-256 of a body, in hex. */
  hashOf(body: Uint8Array): string {
    return createHash('sha256').update(body).digest('hex')
  }

  heightOf(txid: string): number | undefined {
    return this.model.proofs.get(txid)?.height
  }

  /** In order of names. */
  get names(): { name: string; outpoint: string }[] {
    return [...this.origins]
      .map(([outpoint, name]) => ({ name, outpoint }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  originOf(name: string): string | undefined {
    return this.names.find((each) => each.name === name)?.outpoint
  }

  /** The nodes of a domain that no mint spends. */
  liveNodes(domain: string): string[] {
    return [...this.nodes]
      .filter(([outpoint, own]) => own === domain && this.spenderOf(outpoint) === undefined)
      .map(([outpoint]) => outpoint)
  }

  longestNode(name: string): { domain: string; outpoint: string } | undefined {
    for (let length = name.length; length >= 0; length--) {
      const domain = name.slice(0, length)
      const [outpoint] = this.liveNodes(domain)
      if (outpoint !== undefined) return { domain, outpoint }
    }
    return undefined
  }

  /** The 1-sat coin that an output received. */
  previousOf(outpoint: string): string | 'unknown' | undefined {
    if (!this.before.has(outpoint))
      this.before.set(
        outpoint,
        previousOf(this.forest, this.transaction(outpoint), voutOf(outpoint), this.known),
      )
    return this.before.get(outpoint)
  }

  /** The unbroken 1-sat run that an output stands in, and whether nothing is missing before it. */
  private lineageOf(outpoint: string): { run: string[]; whole: boolean } {
    if (this.said(outpoint).satoshis !== 1) return { run: [outpoint], whole: true }
    const run = [outpoint]
    let whole = true
    for (let at: string | undefined = outpoint; at !== undefined; ) {
      const previous: string | undefined = this.origins.has(at) ? undefined : this.previousOf(at)
      whole = previous === undefined
      // A coin that is known and not held has no content: it precedes the ordinal.
      at = previous !== undefined && this.known(previous.slice(0, 64)) ? previous : undefined
      if (at !== undefined) run.unshift(at)
    }
    for (let next = this.next.get(outpoint); next !== undefined; next = this.next.get(next)) run.push(next)
    return { run, whole }
  }

  /** An ordinal's whole life; empty where its origin is not known. */
  lineage(outpoint: string): string[] {
    if (!this.held.has(outpoint)) return []
    const { run, whole } = this.lineageOf(outpoint)
    return whole && run.some((each) => this.said(each).content) ? run : []
  }

  /** The last output of the lineage that an output stands in. */
  lastOf(outpoint: string): string {
    return this.lineageOf(outpoint).run.at(-1) ?? outpoint
  }

  /** Where an ordinal is now, if it has not been burnt. */
  currentOf(outpoint: string): string | undefined {
    const last = this.held.has(outpoint) ? this.lastOf(outpoint) : outpoint
    return this.spenderOf(last) === undefined ? last : undefined
  }

  stepOf(outpoint: string, sequence: number): StepAnswer | undefined {
    if (!this.held.has(outpoint)) return undefined
    const isAlone = this.said(outpoint).satoshis !== 1
    const { run, whole } = this.lineageOf(outpoint)
    const first = run.findIndex((each) => this.said(each).content !== undefined)
    if (!whole || first === -1) return undefined
    const step = sequence === TIP ? run.length - 1 : sequence === ORIGIN ? first : first + sequence
    const [at, origin] = [run[step], run[first]]
    const content = run.slice(0, step + 1).findLast((each) => this.said(each).content)
    if (at === undefined || origin === undefined || content === undefined) return undefined
    if (isAlone && ![0, TIP, ORIGIN].includes(sequence)) return undefined
    return {
      outpoint: at,
      sequence: step - first,
      origin,
      content,
      ...this.saidAlong(run.slice(first, step + 1)),
      tip: step === run.length - 1,
    }
  }

  /** What an output says by itself, where it is held. */
  alone(
    outpoint: string,
  ): { content: string | undefined; parent: string | undefined; map: MapAnswer } | undefined {
    if (!this.held.has(outpoint)) return undefined
    const content = this.said(outpoint).content === undefined ? undefined : outpoint
    return { content, ...this.saidAlong([outpoint]) }
  }

  firstContentOf(txid: string): string | undefined {
    const { said } = this.transaction(txid)
    return said
      .map((_, vout) => `${txid}_${vout}`)
      .find((outpoint) => this.held.has(outpoint) && this.said(outpoint).content)
  }

  /** Where the ordinals are now of which something holds, by their lineages' first outputs. */
  tipsWhere(has: (tip: string) => boolean): string[] {
    const lasts = new Map(
      [...this.held].map((each) => [this.lineageOf(each).run[0] ?? each, this.lastOf(each)]),
    )
    return [...lasts]
      .sort(([one], [other]) => byOutpoint(one, other))
      .map(([, last]) => last)
      .filter(has)
  }

  /** The bodies of a stream from an output on, and its type. */
  streamOf(outpoint: string): { contentType: string; bodies: Uint8Array[] } | undefined {
    if (!this.held.has(outpoint) || this.said(outpoint).content === undefined) return undefined
    const isAlone = this.said(outpoint).satoshis !== 1
    const { run } = this.lineageOf(outpoint)
    const at = run.indexOf(outpoint)
    const onwards = isAlone ? [outpoint] : run.slice(at)
    const contents = onwards.map((each) => this.said(each).content)
    const end = contents.findIndex(
      (content, i) => content === undefined || (i > 0 && content.contentType !== CHUNK_TYPE),
    )
    const bodies = contents.slice(0, end === -1 ? undefined : end).flatMap((content) => content?.body ?? [])
    const back = run.slice(0, at + 1).reverse()
    const start = back.find((each) => this.said(each).content?.contentType !== CHUNK_TYPE)
    const startType = start === undefined ? undefined : this.said(start).content?.contentType
    return { contentType: startType ?? 'application/octet-stream', bodies }
  }

  private saidAlong(run: string[]): ReturnType<typeof saidAlong> {
    return saidAlong(run.map((outpoint) => this.said(outpoint)))
  }

  private transaction(outpoint: string): ForestTransaction {
    const found = this.forest.byTxid.get(outpoint.slice(0, 64))
    if (found === undefined) throw new Error(`no such transaction in the forest: ${outpoint}`)
    return found
  }
}

export function voutOf(outpoint: string): number {
  return Number(outpoint.slice(65))
}

function byOutpoint(one: string, other: string): number {
  const [a, b] = [one.slice(0, 64), other.slice(0, 64)]
  if (a !== b) return a < b ? -1 : 1
  return voutOf(one) - voutOf(other)
}
