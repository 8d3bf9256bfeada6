import { createHash } from 'node:crypto'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import { CHUNK_TYPE, type MapAnswer, type Said, saidAlong } from '../support/graph/said-outputs.js'
import { type Decision, decide, type Facts, once } from './decision.js'
import type { History, HistoryTransaction } from './history.js'

/** Whether genuine or not: the list of inscriptions goes by what an output says. */
const NAME_TYPE = PROFILES.local.nameContentType

/** Something that the operator blocks. */
export interface BlockedItem {
  kind: 'outpoint' | 'sha256' | 'name'
  value: string
}

/** What is known of an ordinal at a step. */
export interface StepAnswer {
  outpoint: string
  sequence: number
  origin: string
  content: string
  parent: string | undefined
  map: MapAnswer
  tip: boolean
}

const TIP = -1
const ORIGIN = -2

/** Everything that is to be answered, worked out from what is known, from scratch. */
export class Answers {
  readonly decision: Decision
  /** What the topics admit, whether it counts or not. */
  readonly admitted: { tm_names: ReadonlySet<string>; tm_ordinals: ReadonlySet<string> }
  /** What `tm_ordinals` admits of what counts. */
  readonly held: ReadonlySet<string>
  /** Genuine nodes that count, by outpoint, and their domains. */
  readonly nodes = new Map<string, string>()
  /** Origins of genuine names that count, by outpoint, and the names. */
  readonly origins = new Map<string, string>()
  private readonly spenders = new Map<string, string>()
  private readonly next = new Map<string, string>()

  constructor(
    private readonly history: History,
    readonly facts: Facts & {
      /** What `tm_names` admits, by outpoint: the domain of a node, or the name of an origin. */
      genuine: ReadonlyMap<string, string>
      blocked: readonly BlockedItem[]
      /** The types of content that the policy did not take when these came; by default, those of the history. */
      refused?: ReadonlyMap<string, readonly string[]>
    },
  ) {
    this.decision = decide(history, facts)
    const { genuine } = facts
    this.admitted = { tm_names: new Set(genuine.keys()), tm_ordinals: this.ordinals() }
    const { counts } = this.decision
    const doesCount = (outpoint: string): boolean => counts.has(outpoint.slice(0, 64))
    this.held = new Set([...this.admitted.tm_ordinals].filter(doesCount))
    for (const [outpoint, text] of [...genuine].filter(([outpoint]) => doesCount(outpoint)))
      (outpoint.endsWith('_2') ? this.origins : this.nodes).set(outpoint, text)
    for (const txid of counts) {
      const isMint = this.nodes.has(`${txid}_0`)
      for (const spent of this.transaction(txid).spends)
        if (isMint || !genuine.has(spent) || spent.endsWith('_2')) this.spenders.set(spent, txid)
    }
    for (const outpoint of this.held) {
      const previous = this.previousOf(outpoint)
      if (typeof previous === 'string' && previous !== 'unknown') this.next.set(previous, outpoint)
    }
  }

  /** What an output says: of a parent that does not count, that it is claimed. */
  said(outpoint: string): Said & { claimedParent?: string } {
    const { parent, ...said } = this.written(outpoint)
    if (parent === undefined) return said
    return this.isSpentAt(outpoint, parent) ? { ...said, parent } : { ...said, claimedParent: parent }
  }

  /** Whether the transaction of an output spends an ordinal, by any of the outputs that it was in. */
  private isSpentAt(outpoint: string, parent: string): boolean {
    const { spends } = this.transaction(outpoint)
    const isOrdinal = (spent: string): boolean =>
      this.held.has(spent) && this.runOf(spent).run.includes(parent)
    return spends.includes(parent) || (this.held.has(parent) && spends.some(isOrdinal))
  }

  private written(outpoint: string): Said {
    const said = this.transaction(outpoint).said[voutOf(outpoint)]
    if (said === undefined) throw new Error(`no such output in this history: ${outpoint}`)
    return said
  }

  /** Every parent that an envelope names. */
  get namedParents(): Set<string> {
    const { transactions } = this.history
    return new Set(transactions.flatMap(({ said }) => said.flatMap(({ parent }) => parent ?? [])))
  }

  /** The outputs of a transaction that a topic admits. */
  admittedOf(topic: 'tm_names' | 'tm_ordinals', txid: string): number[] {
    return [...this.admitted[topic]]
      .filter((each) => each.startsWith(txid))
      .map(voutOf)
      .sort((a, b) => a - b)
  }

  /** The transaction that counts and spends an outpoint; of a node, only a mint is one. */
  spenderOf(outpoint: string): string | undefined {
    return this.spenders.get(outpoint)
  }

  /** Whether anything that counts has an outpoint among its inputs, whatever stands there. */
  isInput(outpoint: string): boolean {
    return [...this.decision.counts].some((txid) => this.transaction(txid).spends.includes(outpoint))
  }

  heightOf(txid: string): number | undefined {
    return this.facts.proofs.get(txid)?.height
  }

  isKnown(txid: string): boolean {
    return this.facts.insertionOrder.has(txid)
  }

  /** Whether what is known proves a transaction: its block, or scripts that pass, back to blocks. */
  isProven(txid: string): boolean {
    if (this.facts.proofs.has(txid)) return true
    const transaction = this.history.byTxid.get(txid)
    if (transaction === undefined || transaction.needsProof || !this.isKnown(txid)) return false
    return transaction.spends.every((spent) => this.isProven(spent.slice(0, 64)))
  }

  /** In order of names, without what is blocked. */
  get names(): { name: string; outpoint: string }[] {
    return [...this.origins]
      .map(([outpoint, name]) => ({ name, outpoint }))
      .filter(({ outpoint }) => !this.isBlocked(outpoint))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The outputs in the list of inscriptions that count, blocked or not. */
  get inscribed(): string[] {
    const isListed = (outpoint: string): boolean => {
      const type = this.said(outpoint).content?.contentType
      return type !== undefined && type !== CHUNK_TYPE && type !== NAME_TYPE && !this.origins.has(outpoint)
    }
    return [...this.held].filter(isListed)
  }

  /** As lists of what is newest have them, without what is blocked: unproven ones in any order, then proven ones. */
  newest(outpoints: Iterable<string>): { unproven: string[]; proven: string[] } {
    const shown = [...outpoints].filter((each) => !this.isBlocked(each)).sort((a, b) => -byOutpoint(a, b))
    const heightOf = (each: string): number | undefined => this.heightOf(each.slice(0, 64))
    return {
      unproven: shown.filter((each) => heightOf(each) === undefined),
      proven: shown
        .filter((each) => heightOf(each) !== undefined)
        .sort((a, b) => (heightOf(b) ?? 0) - (heightOf(a) ?? 0)),
    }
  }

  /** The nodes right below a domain, without blocked ones. */
  childNodes(domain: string): { domain: string; outpoint: string | undefined; children: number }[] {
    const below = [...new Set(this.nodes.values())].filter(
      (each) => each.length === domain.length + 1 && each.startsWith(domain),
    )
    return below
      .sort()
      .map((each) => ({
        domain: each,
        outpoint: this.liveNode(each),
        children: [...this.nodes.values()].filter((own) => own === each).length - 1,
      }))
      .filter((each) => !this.isBlockedName(each.domain) && !(each.outpoint && this.isBlocked(each.outpoint)))
  }

  originOf(name: string): string | undefined {
    return [...this.origins].find(([, each]) => each === name)?.[0]
  }

  /** The node of a domain that no mint spends. */
  liveNode(domain: string): string | undefined {
    return [...this.nodes].find(
      ([outpoint, own]) => own === domain && this.spenderOf(outpoint) === undefined,
    )?.[0]
  }

  longestNode(name: string): { domain: string; outpoint: string } | undefined {
    for (let length = name.length; length >= 0; length--) {
      const domain = name.slice(0, length)
      const outpoint = this.liveNode(domain)
      if (outpoint !== undefined) return { domain, outpoint }
    }
    return undefined
  }

  /** Whether an output is blocked: by its outpoint, by what it shows, or as the origin of a name. */
  isBlocked(outpoint: string): boolean {
    const content = this.held.has(outpoint) ? this.said(outpoint).content : undefined
    const values: Record<BlockedItem['kind'], string | undefined> = {
      outpoint,
      sha256: content && sha256(content.body),
      name: this.origins.get(outpoint),
    }
    return this.facts.blocked.some(({ kind, value }) => values[kind] === value)
  }

  isBlockedName(name: string): boolean {
    return this.facts.blocked.some(({ kind, value }) => kind === 'name' && value === name)
  }

  /** An ordinal's whole 1-sat lineage, what precedes its origin included; empty where its origin is not known. */
  lineage(outpoint: string): string[] {
    if (!this.held.has(outpoint)) return []
    const { run, whole } = this.runOf(outpoint)
    return whole && run.some((each) => this.said(each).content) ? run : []
  }

  /** Where an ordinal is now, unless it has been burnt or is on its way to where nobody knows. */
  currentOf(outpoint: string): string | undefined {
    const last = this.lastOf(outpoint)
    return this.spenderOf(last) === undefined ? last : undefined
  }

  stepOf(outpoint: string, sequence: number): StepAnswer | undefined {
    const run = this.lineage(outpoint)
    const first = run.findIndex((each) => this.said(each).content !== undefined)
    const step = sequence === TIP ? run.length - 1 : sequence === ORIGIN ? first : first + sequence
    const [at, origin] = [run[step], run[first]]
    const content = run.slice(0, step + 1).findLast((each) => this.said(each).content)
    if (at === undefined || origin === undefined || content === undefined) return undefined
    const said = this.saidAlong(run.slice(first, step + 1))
    return { outpoint: at, sequence: step - first, origin, content, ...said, tip: step === run.length - 1 }
  }

  /** What an output says by itself. */
  alone(outpoint: string): Pick<StepAnswer, 'parent' | 'map'> & { content: string | undefined } {
    const content = this.said(outpoint).content === undefined ? undefined : outpoint
    return { content, ...this.saidAlong([outpoint]) }
  }

  firstContentOf(txid: string): string | undefined {
    const outpoints = this.transaction(txid).said.map((_, vout) => `${txid}_${vout}`)
    return outpoints.find((outpoint) => this.held.has(outpoint) && this.said(outpoint).content)
  }

  /** Where the ordinals are now of which something holds, by where their lineages start, without what is blocked there. */
  tipsWhere(has: (tip: string, step: StepAnswer | undefined) => boolean): string[] {
    const tips = new Map(
      [...this.held].map((each) => {
        const { run } = this.runOf(each)
        return [run[0] ?? each, run.at(-1) ?? each]
      }),
    )
    return [...tips]
      .sort(([one], [other]) => byOutpoint(one, other))
      .map(([, tip]) => tip)
      .filter((tip) => {
        const step = this.stepOf(tip, TIP)
        const shown = [tip, ...(step === undefined ? [] : [step.content])]
        return has(tip, step) && !shown.some((each) => this.isBlocked(each))
      })
  }

  /** The outputs of a stream from an output on, and its type. */
  streamOf(outpoint: string): { contentType: string; chunks: string[] } | undefined {
    if (!this.held.has(outpoint) || this.said(outpoint).content === undefined) return undefined
    const { run } = this.runOf(outpoint)
    const at = run.indexOf(outpoint)
    const typeOf = (each: string): string | undefined => this.said(each).content?.contentType
    const onwards = run.slice(at)
    const end = onwards.findIndex((each, i) => (i === 0 ? false : typeOf(each) !== CHUNK_TYPE))
    // Chunk 0 is the first, going back, that is of another type.
    const start = run.slice(0, at + 1).findLast((each) => typeOf(each) !== CHUNK_TYPE)
    return {
      contentType: (start === undefined ? undefined : typeOf(start)) ?? 'application/octet-stream',
      chunks: onwards.slice(0, end === -1 ? undefined : end),
    }
  }

  /** What `tm_ordinals` admits of all that is known. */
  private ordinals(): Set<string> {
    const admitted = new Set<string>()
    for (const { txid, said, outpoint } of this.history.transactions) {
      if (!this.facts.insertionOrder.has(txid)) continue
      for (const [vout, { satoshis, content, map }] of said.entries()) {
        if (this.isRefused(outpoint(vout))) continue
        const holds = content !== undefined || (satoshis === 1 && map !== undefined)
        if (holds || admitted.has(this.received(outpoint(vout)) ?? '')) admitted.add(outpoint(vout))
      }
    }
    return admitted
  }

  /**
   * The 1-sat coin that a 1-sat output receives, satoshi by satoshi (BRC-159); undefined where it receives none, and
   * `unknown` where a value before it is that of a transaction which is not known.
   */
  private received(outpoint: string): string | undefined {
    const { said, spends } = this.transaction(outpoint)
    const vout = voutOf(outpoint)
    if (said[vout]?.satoshis !== 1) return undefined
    const start = said.slice(0, vout).reduce((sum, { satoshis }) => sum + satoshis, 0)
    let before = 0
    for (const spent of spends) {
      if (!this.facts.insertionOrder.has(spent.slice(0, 64))) return 'unknown'
      const { satoshis } = this.written(spent)
      if (start < before + satoshis) return start === before && satoshis === 1 ? spent : undefined
      before += satoshis
    }
    return undefined
  }

  /** The output before an output in its lineage; the name that a mint makes has none. Behind what a policy refuses, nobody looks. */
  private previousOf(outpoint: string): string | undefined {
    const received = this.origins.has(outpoint) ? undefined : this.received(outpoint)
    return received !== undefined && received !== 'unknown' && this.isRefused(received) ? 'unknown' : received
  }

  /** Whether the operator's policy does not take what an output holds. */
  private isRefused(outpoint: string): boolean {
    const type = this.written(outpoint).content?.contentType
    const refused = this.facts.refused?.get(outpoint.slice(0, 64)) ?? this.history.refusedTypes
    return type !== undefined && refused.includes(type)
  }

  /** The unbroken 1-sat run that an output stands in, and whether nothing is missing before it. */
  readonly runOf = once((outpoint): { run: string[]; whole: boolean } => {
    const run = [outpoint]
    let previous = this.previousOf(outpoint)
    for (; previous !== undefined && previous !== 'unknown'; previous = this.previousOf(previous))
      run.unshift(previous)
    for (let next = this.next.get(outpoint); next !== undefined; next = this.next.get(next)) run.push(next)
    return { run, whole: previous === undefined }
  })

  private lastOf(outpoint: string): string {
    return this.runOf(outpoint).run.at(-1) ?? outpoint
  }

  /** What outputs say together, without what is said where the operator blocked it. */
  private saidAlong(run: string[]): ReturnType<typeof saidAlong> {
    const isBlocked = (outpoint: string): boolean =>
      this.facts.blocked.some(({ kind, value }) => kind === 'outpoint' && value === outpoint)
    return saidAlong(
      run.map((each) => {
        const { parent, map } = this.said(each)
        return { ...(parent && { parent }), ...(map && !isBlocked(each) && { map }) }
      }),
    )
  }

  private transaction(outpoint: string): HistoryTransaction {
    const found = this.history.byTxid.get(outpoint.slice(0, 64))
    if (found === undefined) throw new Error(`no such transaction in this history: ${outpoint}`)
    return found
  }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function byOutpoint(one: string, other: string): number {
  const [a, b] = [one.slice(0, 64), other.slice(0, 64)]
  if (a !== b) return a < b ? -1 : 1
  return voutOf(one) - voutOf(other)
}

function voutOf(outpoint: string): number {
  return Number(outpoint.slice(65))
}
