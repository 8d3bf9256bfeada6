import { fromHex, toHex, utf8 } from '../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { unlessAborted, withTimeLimit } from './bounded-fetch.js'
import { type ClaimedBlock, hostSha256 } from './bundle.js'
import { HeadersError } from './errors.js'
import {
  type KnownMint,
  type KnownName,
  type KnownStep,
  mintIn,
  NAME_VOUT,
  placesIn,
  startsWith,
} from './known-name.js'
import { askStore, RecentMap, type SegmentStore } from './segment-store.js'
import { type Headers, isKnownRoot } from './verify-transactions.js'

/** How many segments from a store are kept decoded. */
const MAX_READ = 2000

/** A question with headers: they alone prove anything. */
interface Asked {
  name: string
  deployment: Deployment
  chainTracker: Exclude<Headers, string>
}

/**
 * Verified parts of trees in a store, which are neither fetched nor verified again. Make one per store and keep it: concurrent
 * resolutions share what they fetch.
 */
export class Segments {
  /** Segments from the store, by key. */
  private readonly read = new RecentMap<Promise<unknown>>(MAX_READ)
  /** What resolutions are fetching, by the index and what they lack. */
  private readonly fetching = new Map<string, Promise<void>>()

  private readonly store: SegmentStore

  constructor({ store }: { store: SegmentStore }) {
    this.store = store
  }

  /** The memory of one resolution about a name; undefined without headers. */
  recall(asked: Omit<Asked, 'chainTracker'> & { chainTracker: Headers }): NameMemory | undefined {
    const { name, deployment, chainTracker } = asked
    if (chainTracker === 'scripts only') return undefined
    const segments = new TreeSegments(deployment, this.store, this.read)
    return new NameMemory({ name, deployment, chainTracker }, segments, this.fetching)
  }
}

export class NameMemory {
  /** The blocks that this resolution has asked the chain tracker about, or has verified. */
  private readonly blocks = new Map<string, boolean>()
  /** Set if it is unknown whether earlier results still hold. */
  failure: HeadersError | undefined

  constructor(
    private readonly asked: Asked,
    private readonly segments: TreeSegments,
    private readonly fetching: Map<string, Promise<void>>,
  ) {}

  /**
   * Asks an index with what is known of the name. If another resolution is fetching from that index what this one lacks, too, it
   * goes first, and this one then knows more.
   *
   * @param bounds.patience How long to wait for others, in milliseconds.
   */
  async share<Answer>(
    index: string,
    { signal, patience }: { signal: AbortSignal; patience: number },
    ask: (known: KnownName | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    const end = monotonic() + patience
    let known = await this.known(signal)
    while (known !== undefined && mintIn(known, this.asked.name) === undefined) {
      const key = `${index} ${this.furthest(known)}`
      const other = this.fetching.get(key)
      if (other === undefined) {
        const asking = ask(known).finally(() => this.fetching.delete(key))
        const ended = (): void => undefined
        this.fetching.set(key, asking.then(ended, ended))
        return await asking
      }
      const left = end - monotonic()
      if (left <= 0) break
      const late = (): Error => new Error('another resolution takes too long')
      await withTimeLimit({ milliseconds: left, late, signal }, (each) => unlessAborted(other, each)).catch(
        () => signal.throwIfAborted(),
      )
      known = await this.known(signal)
    }
    return await ask(known)
  }

  private furthest(known: KnownName): string {
    const { deployment } = this.asked
    return formatOutpoint(placesIn(known, this.asked).nodes[0] ?? deployment.genesis)
  }

  /** What is known; undefined if the chain tracker does not say whether it still holds. */
  private async known(signal: AbortSignal): Promise<KnownName | undefined> {
    const { name, chainTracker } = this.asked
    const isInChain = async (block: ClaimedBlock): Promise<boolean> => {
      const answer =
        this.blocks.get(blockKey(block)) ?? (await isKnownRoot(chainTracker, { ...block, signal }))
      this.blocks.set(blockKey(block), answer)
      return answer
    }
    try {
      const known = await unlessAborted(this.segments.known(name, isInChain), signal)
      this.failure = undefined
      return known
    } catch (error) {
      if (!(error instanceof HeadersError)) throw error
      this.failure = error
      return undefined
    }
  }

  async keep(verified: KnownName, before: KnownName | undefined): Promise<void> {
    const highest = verified.steps.at(-1) ?? verified.line.at(-1)
    if (highest !== undefined) this.blocks.set(blockKey(highest), true)
    await this.segments.keep(this.asked.name, verified, before)
  }

  /** What is known of the name by the blocks that were asked about or verified, without asking the chain tracker again. */
  async lately(): Promise<KnownName> {
    const isInChain: BlockCheck = async (block) => this.blocks.get(blockKey(block)) === true
    return await this.segments.known(this.asked.name, isInChain)
  }
}

function blockKey({ height, root }: ClaimedBlock): string {
  return `${height} ${root}`
}

/** Whether the block in which something was verified is still in the chain. */
type BlockCheck = (block: ClaimedBlock) => Promise<boolean>

/** The mints that spend a node of one domain, one after another. */
interface NodeSegment {
  mints: KnownMint[]
  /** The code of the covenant, which all nodes share; only with the genesis. */
  code?: string
}

interface OrdinalSegment {
  steps: readonly KnownStep[]
  /** As hex. */
  lockingScript: string
  spends: readonly string[]
}

/**
 * The verified parts of one tree in a store: for each node, the mints that spend it and its restated forms, under the outpoint in
 * which the node was created; for each name, the steps of its ordinal, under the outpoint in which it was minted. They are found
 * from the genesis only, and only under the rules by which they were verified.
 */
class TreeSegments {
  private readonly tree: string

  /** @param read Segments from the store, by key, which resolutions share. */
  constructor(
    private readonly deployment: Deployment,
    private readonly store: SegmentStore,
    private readonly read: RecentMap<Promise<unknown>>,
  ) {
    this.tree = `${formatOutpoint(deployment.genesis)}-${termsDigest(deployment)}`
  }

  /**
   * What is known of a name, as far as its blocks are still in the chain. If none was replaced, only the highest block is asked
   * about, which stands on all the others.
   *
   * @throws what `isInChain` throws.
   */
  async known(name: string, isInChain: BlockCheck): Promise<KnownName> {
    const line: KnownMint[] = []
    let code = ''
    let node = this.deployment.genesis
    for (let length = 1; length <= name.length; length++) {
      const segment = await this.get(node, isNodeSegment)
      code ||= segment?.code ?? ''
      if (segment === undefined || code === '') break
      const at = segment.mints.findIndex((mint) => mint.name === name.slice(0, length))
      const mint = segment.mints[at]
      line.push(...segment.mints.slice(0, mint === undefined ? undefined : at + 1))
      if (mint === undefined) break
      node = { txid: mint.txid, vout: 1 }
    }
    const mint = mintIn({ code, line, steps: [] }, name)
    const ordinal = mint && (await this.get(originOf(mint), isOrdinalSegment))
    const steps = ordinal?.steps ?? []
    const left = await countInChain([...line, ...steps], isInChain)
    if (left < line.length) return { code, line: line.slice(0, left), steps: [] }
    // The script that is kept is that of the last step, and steps without it are of little use.
    if (ordinal === undefined || left < line.length + steps.length) return { code, line, steps: [] }
    return { code, line, ...ordinal, lockingScript: fromHex(ordinal.lockingScript) }
  }

  /**
   * Keeps what was verified of a name.
   *
   * @param before What was already known of it.
   */
  async keep(name: string, verified: KnownName, before?: KnownName): Promise<void> {
    const { code, line, steps, lockingScript, spends } = verified
    if (!areInOrder([...line, ...steps])) return
    if (!startsWith(before?.line ?? [], line)) await this.keepLine({ code, line })
    const mint = mintIn(verified, name)
    if (mint === undefined || lockingScript === undefined || spends === undefined) return
    if (startsWith(before?.steps ?? [], steps)) return
    const kept = await this.get(originOf(mint), isOrdinalSegment)
    // An index that is behind shows fewer steps.
    if (kept === undefined || !startsWith(kept.steps, steps))
      await this.put(originOf(mint), { steps, lockingScript: toHex(lockingScript), spends })
  }

  private async keepLine({ code, line }: Pick<KnownName, 'code' | 'line'>): Promise<void> {
    for (let start = 0, end = 0; start < line.length; start = end) {
      const { domain } = line[start] as KnownMint
      while (line[end]?.domain === domain) end++
      const mints = line.slice(start, end)
      const before = line[start - 1]
      const node = before === undefined ? this.deployment.genesis : { txid: before.txid, vout: 1 }
      const kept = await this.get(node, isNodeSegment)
      // Another resolution may have kept more mints of this node.
      if (kept === undefined || !startsWith(kept.mints, mints))
        await this.put(node, { mints, ...(before === undefined && { code }) })
    }
  }

  private async get<Segment extends NodeSegment | OrdinalSegment>(
    outpoint: Outpoint,
    isSegment: IsA<Segment>,
  ): Promise<Segment | undefined> {
    const key = this.keyOf(outpoint)
    const read = this.read.get(key)
    if (read !== undefined) return (await read) as Segment | undefined
    const reading = askStore(this.store, () => this.store.get(key))
      .then((text = '') => openSealed(key, text))
      .then((opened) => (isSegment(opened) ? opened : undefined))
      .catch(() => undefined)
    this.read.set(key, reading)
    const segment = await reading
    // The store may have failed, or another program may put it there later.
    if (segment === undefined && this.read.get(key) === reading) this.read.delete(key)
    return segment as Segment | undefined
  }

  private async put(outpoint: Outpoint, segment: NodeSegment | OrdinalSegment): Promise<void> {
    const key = this.keyOf(outpoint)
    this.read.set(key, Promise.resolve(segment))
    await askStore(this.store, () => this.store.put(key, seal(key, segment))).catch(() => undefined)
  }

  private keyOf(outpoint: Outpoint): string {
    return `${this.tree}/${formatOutpoint(outpoint)}`
  }
}

function originOf({ txid }: KnownMint): Outpoint {
  return { txid, vout: NAME_VOUT }
}

/** A digest of a tree's rules: under other rules, mints are verified again. */
function termsDigest({ genesis: _, marker, ...terms }: Deployment): string {
  const sorted = Object.entries({ ...terms, marker: toHex(marker) })
    .filter(([, value]) => value !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return toHex(hostSha256(utf8(JSON.stringify(sorted)))).slice(0, 16)
}

/** How many of these places, from the first on, are in blocks of the chain. A chain with a block has all blocks below it. */
async function countInChain(places: readonly ClaimedBlock[], isInChain: BlockCheck): Promise<number> {
  let count = places.length
  for (let last = places[count - 1]; last !== undefined; last = places[count - 1]) {
    const { height, root } = last
    if (await isInChain({ height, root })) break
    while (places[count - 1]?.root === root) count--
  }
  return count
}

/**
 * Whether no place is in a lower block than the one before, as {@link countInChain} assumes: a transaction is never below what it
 * spends.
 */
function areInOrder(places: readonly ClaimedBlock[]): boolean {
  return places.every(({ height }, at) => height >= (places[at - 1]?.height ?? 0))
}

/** A segment as text: a digest, which shows damage, and JSON with the segment's key. */
function seal(key: string, segment: NodeSegment | OrdinalSegment): string {
  const body = JSON.stringify({ key, ...segment })
  return `${toHex(hostSha256(utf8(body)))} ${body}`
}

const DIGEST_LENGTH = 64

/** What is in a sealed text; undefined if that is damaged, or belongs to another key. @throws SyntaxError if it is no JSON */
function openSealed(key: string, text: string): unknown {
  const body = text.slice(DIGEST_LENGTH + 1)
  if (text.slice(0, DIGEST_LENGTH) !== toHex(hostSha256(utf8(body)))) return undefined
  const sealed = JSON.parse(body) as { key?: unknown } | null
  return sealed?.key === key ? sealed : undefined
}

type IsA<Segment> = (opened: unknown) => opened is Segment

/** Whether a value has a form. A text under a right digest may come from another version. */
type Form = (value: unknown) => boolean

const matches =
  (pattern: RegExp): Form =>
  (value) =>
    typeof value === 'string' && pattern.test(value)
const isText: Form = (value) => typeof value === 'string'
const isHex = matches(/^(?:[0-9a-f]{2})*$/)
const isHash = matches(/^[0-9a-f]{64}$/)
const optional =
  (is: Form): Form =>
  (value) =>
    value === undefined || is(value)
const listOf =
  (is: Form): Form =>
  (value) =>
    Array.isArray(value) && value.every(is)
const withFields =
  (fields: Record<string, Form>): Form =>
  (value) =>
    Object.entries(fields).every(([name, is]) => is((value as Record<string, unknown> | null)?.[name]))

const block = { height: Number.isSafeInteger, root: isHash }
const isMint = withFields({
  ...{ txid: isHash, name: isText, domain: isText, claimed: isHex, seed: isHex, spends: listOf(isText) },
  ...{ ownerLock: optional(isHex), ...block },
})
const isStep = withFields({ txid: isHash, vout: Number.isSafeInteger, ...block })
const isNodeSegment = withFields({ mints: listOf(isMint), code: optional(isHex) }) as IsA<NodeSegment>
const isOrdinalSegment = withFields({
  ...{ steps: listOf(isStep), lockingScript: isHex, spends: listOf(isText) },
}) as IsA<OrdinalSegment>
