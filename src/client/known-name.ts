import { concatBytes, equalBytes, fromHex, toHex } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode, encodeMineNode, UNCLAIMED } from '../../backend/src/protocol/mine-node.js'
import { type Deployment, encodeNameOutput, MINT_SATOSHIS } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { outputOf, type SpentOutput, type TransactionView } from '../../backend/src/protocol/transaction.js'
import type { ClaimedBlock } from './bundle.js'

/** Which output of a mint holds the name (service.md 2.7). */
export const NAME_VOUT = 2
/** Which output of a mint restates the node that it spends, and which holds the node of the longer domain. */
const RESTATED_VOUT = 0
const CHILD_VOUT = 1

/** A mint that was verified and is in a block, with what its nodes and its name consist of. Bytes are hex. */
export interface KnownMint extends ClaimedBlock {
  txid: string
  /** The name that it claims. */
  name: string
  /** The domain of the node that it spends. */
  domain: string
  /** Of the node that it restates. */
  claimed: string
  /** Of both nodes that it leaves. */
  seed: string
  /** The first outputs that it spends, as text. */
  spends: readonly string[]
  /** What the script of the name starts with; absent if it is long. */
  ownerLock?: string
}

/** A step of an ordinal that was verified and is in a block. */
export interface KnownStep extends ClaimedBlock, Outpoint {}

/**
 * What was verified of a name earlier: all of it is in blocks. Plain data, which can be sent to a worker and be stored.
 */
export interface KnownName {
  /** The code of the covenant, which every node of the tree has, as hex. */
  code: string
  line: readonly KnownMint[]
  /** The steps of its ordinal after the origin, in order; only if the line reaches the name. */
  steps: readonly KnownStep[]
  /** The script of the last of the steps. */
  lockingScript?: Uint8Array
  /** What an identity binding in that script may name: outputs that the step spends, as text. */
  spends?: readonly string[]
}

/** How many inputs of a mint an identity binding may name: the node may stand anywhere among them. */
export const MINT_INPUTS = 4
/** A longer owner lock is not kept: one of P2PKH has 25 bytes. */
const MAX_OWNER_LOCK = 200
/** A place whose script is longer is not kept. */
const MAX_SCRIPT = 64 * 1024
/** How many steps of an ordinal are kept. */
export const MAX_STEPS = 1000

/** The mint of a name, if the line reaches it. */
export function mintIn({ line }: KnownName, name: string): KnownMint | undefined {
  const last = line.at(-1)
  return last?.name === name ? last : undefined
}

/** The node from which a line goes on to a name. */
export interface KnownNode extends SpentOutput {
  outpoint: Outpoint
}

/** The most nodes that a source gets to know of: the furthest, and others in case it is on another branch. */
const MAX_NODES = 3

/**
 * The nodes from which sources may show how a line goes on to a name, the furthest first. None if nothing is known of the way,
 * or all of it.
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

/** The node that a mint leaves on the way to a name. */
function nodeOf({ txid, name: claimed }: KnownMint, name: string): Outpoint {
  return { txid, vout: name.startsWith(claimed) ? CHILD_VOUT : RESTATED_VOUT }
}

/** The script of the output in which a name was minted; undefined if its owner lock was not kept. */
export function originScript({ ownerLock, name }: KnownMint, deployment: Deployment): Uint8Array | undefined {
  if (ownerLock === undefined) return undefined
  return encodeNameOutput({ ownerLock: fromHex(ownerLock), name, deployment })
}

/** What an asker has of a name, so that sources need not show it. */
export interface KnownPlaces {
  /** Nodes on the way from the genesis to the name, the furthest first. */
  nodes: readonly Outpoint[]
  /** Where the name was minted, if that is known. */
  origin?: Outpoint
  /** The last place of its ordinal that is known with its script, if any is. */
  tip?: Outpoint
}

/** What a source should know of what is known. */
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

/**
 * What is to be remembered of a mint that was verified. Its outputs are as its nodes say: whoever verified it has compared
 * them.
 */
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

/** The steps to remember, with the script of the last one; those known before if that is too long. */
export function withSteps(
  known: KnownName,
  last: { steps: readonly KnownStep[]; lockingScript: Uint8Array; spends: readonly string[] },
): KnownName {
  const { steps, lockingScript, spends } = last
  if (steps.length > MAX_STEPS || lockingScript.length > MAX_SCRIPT) return known
  const { code, line } = known
  return { code, line, steps, ...(steps.length > 0 && { lockingScript: lockingScript.slice(), spends }) }
}

/** Whether one list starts as another: the same transactions in the same blocks. */
export function startsWith<Place extends ClaimedBlock & { txid: string }>(
  all: readonly Place[],
  start: readonly Place[],
): boolean {
  return start.every(({ txid, height, root }, at) => {
    const place = all[at]
    return place?.txid === txid && place.height === height && place.root === root
  })
}
