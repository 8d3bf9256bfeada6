import { fromHex, toHex, utf8 } from '../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { type ClaimedBlock, hostSha256 } from './bundle.js'
import {
  type KnownMint,
  type KnownName,
  type KnownStep,
  MAX_STEPS,
  mintIn,
  NAME_VOUT,
  startsWith,
} from './known-name.js'
import { askStore, type RecentMap, type SegmentStore } from './segment-store.js'

/** Whether the block in which something was verified is still in the chain. */
export type BlockCheck = (block: ClaimedBlock) => Promise<boolean>

/** The mints that spend a node of one domain, one after another. */
interface NodeSegment {
  mints: KnownMint[]
  /** The code of the covenant, which all nodes share; only with the genesis. */
  code?: string
}

interface OrdinalSegment {
  steps: KnownStep[]
  lockingScript: Uint8Array
  spends: readonly string[]
}

/**
 * The verified parts of one tree in a store: for each node, the mints that spend it and its restated forms, under the outpoint in
 * which the node was created; for each name, the steps of its ordinal, under the outpoint in which it was minted. They are found
 * from the genesis only, and only under the rules by which they were verified.
 */
export class TreeSegments {
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
      const segment = await this.get(node, decodeNode)
      if (segment === undefined) break
      code ||= segment.code ?? ''
      const at = segment.mints.findIndex((mint) => mint.name === name.slice(0, length))
      const mint = segment.mints[at]
      line.push(...segment.mints.slice(0, mint === undefined ? undefined : at + 1))
      if (mint === undefined) break
      node = { txid: mint.txid, vout: 1 }
    }
    const mint = mintIn({ code, line, steps: [] }, name)
    const ordinal = mint && (await this.get(originOf(mint), decodeOrdinal))
    const steps = ordinal?.steps ?? []
    const left = await countInChain([...line, ...steps], isInChain)
    if (left < line.length) return { code, line: line.slice(0, left), steps: [] }
    // The script that is kept is that of the last step, and steps without it are of little use.
    if (ordinal === undefined || left < line.length + steps.length) return { code, line, steps: [] }
    return { code, line, ...ordinal }
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
    const kept = await this.get(originOf(mint), decodeOrdinal)
    // An index that is behind shows fewer steps.
    if (kept === undefined || !startsWith(kept.steps, steps))
      await this.put(originOf(mint), { steps: [...steps], lockingScript, spends } satisfies OrdinalSegment)
  }

  private async keepLine({ code, line }: Pick<KnownName, 'code' | 'line'>): Promise<void> {
    for (let start = 0, end = 0; start < line.length; start = end) {
      const { domain } = line[start] as KnownMint
      while (line[end]?.domain === domain) end++
      const mints = line.slice(start, end)
      const before = line[start - 1]
      const node = before === undefined ? this.deployment.genesis : { txid: before.txid, vout: 1 }
      const kept = await this.get(node, decodeNode)
      // Another resolution may have kept more mints of this node.
      if (kept === undefined || !startsWith(kept.mints, mints))
        await this.put(node, { mints, ...(before === undefined && { code }) } satisfies NodeSegment)
    }
  }

  private async get<Segment>(outpoint: Outpoint, decode: Decode<Segment>): Promise<Segment | undefined> {
    const key = this.keyOf(outpoint)
    const read = this.read.get(key)
    if (read !== undefined) return (await read) as Segment | undefined
    const reading = askStore(this.store, () => this.store.get(key)).then(
      (text) => {
        const body = text === undefined ? undefined : openSealed(key, text)
        return body && decode(body)
      },
      () => undefined,
    )
    this.read.set(key, reading)
    const segment = await reading
    // The store may have failed, or another program may put it there later.
    if (segment === undefined && this.read.get(key) === reading) this.read.delete(key)
    return segment
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

/** A segment as text: a digest that shows damage, and JSON with the segment's key, bytes as hex. */
function seal(key: string, segment: NodeSegment | OrdinalSegment): string {
  const inHex = (_: string, value: unknown): unknown => (value instanceof Uint8Array ? toHex(value) : value)
  const body = JSON.stringify({ key, ...segment }, inHex)
  return `${toHex(hostSha256(utf8(body)))} ${body}`
}

const DIGEST_LENGTH = 64

/** The fields of a sealed segment; undefined if the text is damaged, or belongs to another key. */
function openSealed(key: string, text: string): Record<string, unknown> | undefined {
  const body = text.slice(DIGEST_LENGTH + 1)
  if (text.slice(0, DIGEST_LENGTH) !== toHex(hostSha256(utf8(body)))) return undefined
  try {
    const fields: unknown = JSON.parse(body)
    return isRecord(fields) && fields.key === key ? fields : undefined
  } catch {
    return undefined
  }
}

type Decode<Segment> = (fields: Record<string, unknown>) => Segment | undefined

/** More mints than can spend a node, which has 37 characters. */
const MAX_MINTS = 64

function decodeNode({ code, mints }: Record<string, unknown>): NodeSegment | undefined {
  if (!Array.isArray(mints) || mints.length > MAX_MINTS) return undefined
  if (!mints.every(isMint) || !areInOrder(mints) || !(code === undefined || isHex(code))) return undefined
  return { mints, ...(code !== undefined && { code }) }
}

function decodeOrdinal({
  steps,
  lockingScript,
  spends,
}: Record<string, unknown>): OrdinalSegment | undefined {
  if (!isHex(lockingScript) || !Array.isArray(steps) || steps.length > MAX_STEPS) return undefined
  if (!steps.every(isStep) || !areInOrder(steps) || !areOutpoints(spends)) return undefined
  return { steps, lockingScript: fromHex(lockingScript), spends }
}

function isMint(value: unknown): value is KnownMint {
  if (!isRecord(value) || !isPlace(value)) return false
  const { name, domain, claimed, seed, spends, ownerLock } = value
  const isOwned = ownerLock === undefined || isHex(ownerLock)
  return (
    typeof name === 'string' &&
    typeof domain === 'string' &&
    isHex(claimed) &&
    isHex(seed) &&
    isOwned &&
    areOutpoints(spends)
  )
}

function isStep(value: unknown): value is KnownStep {
  return isRecord(value) && isPlace(value) && isCount(value.vout)
}

function areOutpoints(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.every((each) => typeof each === 'string' && readOutpoint(each) !== undefined)
  )
}

function isPlace({ txid, root, height }: Record<string, unknown>): boolean {
  return isHex(txid) && txid.length === 64 && isHex(root) && root.length === 64 && isCount(height)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isHex(value: unknown): value is string {
  return typeof value === 'string' && /^([0-9a-f]{2})*$/.test(value)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
