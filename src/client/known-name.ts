import { concatBytes, equalBytes, fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode, encodeMineNode, UNCLAIMED } from '../../backend/src/protocol/mine-node.js'
import { type Deployment, encodeNameOutput, MINT_SATOSHIS } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { outputOf, type SpentOutput, type TransactionView } from '../../backend/src/protocol/transaction.js'
import type { ClaimedBlock } from './bundle.js'

/** The output of a mint that holds the name. */
export const NAME_VOUT = 2
/** The outputs of a mint that restate the spent node, and that hold the node of the longer domain. */
const RESTATED_VOUT = 0
const CHILD_VOUT = 1

/** A verified mint in a block, with the parts of its nodes and its name. Bytes are hex. */
export interface KnownMint extends ClaimedBlock {
  txid: string
  /** The name that it claims. */
  name: string
  /** The domain of the node that it spends. */
  domain: string
  /** The claimed characters of the restated node. */
  claimed: string
  /** The seed of both nodes that it creates. */
  seed: string
  /** The first outputs that it spends, as text. */
  spends: readonly string[]
  /** The start of the name's script; absent if it is long. */
  ownerLock?: string
}

/** A verified step of an ordinal, in a block. */
export interface KnownStep extends ClaimedBlock, Outpoint {}

/** What was verified of a name earlier, all of it in blocks. Plain data, which can be sent to a worker and stored. */
export interface KnownName {
  /** The code of the covenant, which every node of the tree has, as hex. */
  code: string
  line: readonly KnownMint[]
  /** The steps of its ordinal after the origin, in order; empty unless the line reaches the name. */
  steps: readonly KnownStep[]
  /** The script of the last step. */
  lockingScript?: Uint8Array
  /** The inputs of the last step that an identity binding in that script may name, as text. */
  spends?: readonly string[]
}

/** How many inputs of a mint an identity binding may name: the node may be any of them. */
export const MINT_INPUTS = 4
/** The longest owner lock that is kept, in bytes; P2PKH has 25. */
const MAX_OWNER_LOCK = 200
/** The longest script of a step that is kept, in bytes. */
const MAX_SCRIPT = 64 * 1024
/** How many steps of an ordinal are kept. */
export const MAX_STEPS = 1000

/** The mint of a name, if the line reaches it. */
export function mintIn({ line }: KnownName, name: string): KnownMint | undefined {
  const last = line.at(-1)
  return last?.name === name ? last : undefined
}

/** A node from which a line continues to a name. */
export interface KnownNode extends SpentOutput {
  outpoint: Outpoint
}

/** The most nodes that a source learns of: the furthest, and others in case the source is on another branch. */
const MAX_NODES = 3

/**
 * The nodes from which sources may continue the line to a name, the furthest first. None if nothing of the way is known, or all
 * of it.
 */
export function nodesAfter(
  known: KnownName,
  { name, deployment }: { name: string; deployment: Deployment },
): KnownNode[] {
  if (known.line.length === 0 || mintIn(known, name) !== undefined) return []
  const code = fromHex(known.code)
  return startingMints(known, name).map((mint) => {
    const isOnWay = name.startsWith(mint.name)
    const lockingScript = encodeMineNode({
      code,
      genesis: deployment.genesis,
      claimed: isOnWay ? UNCLAIMED : fromHex(mint.claimed),
      domain: isOnWay ? mint.name : mint.domain,
      seed: fromHex(mint.seed),
    })
    return { outpoint: nodeOf(mint, name), satoshis: MINT_SATOSHIS, lockingScript }
  })
}

function startingMints({ line }: KnownName, name: string): KnownMint[] {
  const last = line.at(-1)
  const prefixes = line.filter((each) => each !== last && name.startsWith(each.name)).reverse()
  return [...(last ? [last] : []), ...prefixes].slice(0, MAX_NODES)
}

/** The node that a mint creates on the way to a name. */
function nodeOf({ txid, name: claimed }: KnownMint, name: string): Outpoint {
  return { txid, vout: name.startsWith(claimed) ? CHILD_VOUT : RESTATED_VOUT }
}

/** The script of the output in which a name was minted; undefined if its owner lock was not kept. */
export function originScript({ ownerLock, name }: KnownMint, deployment: Deployment): Uint8Array | undefined {
  if (ownerLock === undefined) return undefined
  return encodeNameOutput({ ownerLock: fromHex(ownerLock), name, deployment })
}

/** Known places of a name, which sources need not show. */
export interface KnownPlaces {
  /** Nodes on the way from the genesis to the name, the furthest first. */
  nodes: readonly Outpoint[]
  /** The output in which the name was minted, if known. */
  origin?: Outpoint
  /** The last place of its ordinal whose script is known. */
  tip?: Outpoint
}

/** The known places that a source learns of. */
export function placesIn(
  known: KnownName,
  { name, deployment }: { name: string; deployment: Deployment },
): KnownPlaces {
  const mint = mintIn(known, name)
  if (mint !== undefined) {
    const origin = { txid: mint.txid, vout: NAME_VOUT }
    const step = known.steps.at(-1)
    const hasScript = step !== undefined || originScript(mint, deployment) !== undefined
    return {
      nodes: [],
      origin,
      ...(hasScript && { tip: step ? { txid: step.txid, vout: step.vout } : origin }),
    }
  }
  return { nodes: startingMints(known, name).map((each) => nodeOf(each, name)) }
}

/** What to remember of a verified mint. Its outputs are taken from its nodes: the verification has compared them. */
export function knownMint(
  transaction: TransactionView,
  of: { name: string; block: ClaimedBlock; deployment: Deployment },
): { mint: KnownMint; code: string } {
  const { name, block, deployment } = of
  const scriptOf = (vout: number) => outputOf(transaction, vout)?.lockingScript ?? new Uint8Array()
  const { code, claimed, domain, seed } = decodeMineNode(scriptOf(RESTATED_VOUT))
  const tail = encodeNameOutput({ ownerLock: new Uint8Array(), name, deployment })
  const script = scriptOf(NAME_VOUT)
  const ownerLock = script.subarray(0, Math.max(0, script.length - tail.length))
  const isRebuilt = ownerLock.length <= MAX_OWNER_LOCK && equalBytes(concatBytes(ownerLock, tail), script)
  return {
    code: toHex(code),
    mint: {
      txid: transaction.txid,
      name,
      domain,
      claimed: toHex(claimed),
      seed: toHex(seed),
      spends: transaction.inputs.slice(0, MINT_INPUTS).map(formatOutpoint),
      ...(isRebuilt && { ownerLock: toHex(ownerLock) }),
      ...block,
    },
  }
}

/** A known name with the steps to remember and the script of the last one; unchanged if these are too long. */
export function withSteps(
  known: KnownName,
  last: { steps: readonly KnownStep[]; lockingScript: Uint8Array; spends: readonly string[] },
): KnownName {
  const { steps, lockingScript, spends } = last
  if (steps.length > MAX_STEPS || lockingScript.length > MAX_SCRIPT) return known
  const { code, line } = known
  return { code, line, steps, ...(steps.length > 0 && { lockingScript: lockingScript.slice(), spends }) }
}

/** Whether a list starts with another one: the same transactions in the same blocks. */
export function startsWith<Place extends ClaimedBlock & { txid: string }>(
  all: readonly Place[],
  start: readonly Place[],
): boolean {
  return start.every(({ txid, height, root }, at) => {
    const place = all[at]
    return place?.txid === txid && place.height === height && place.root === root
  })
}
