import fc from 'fast-check'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode, isClaimed } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { ownerOf } from '../../test/support/graph/life.js'
import { inscribing, outputOf, type Said, saying } from '../../test/support/graph/said-outputs.js'
import {
  FakeChain,
  type FakeNode,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../test/support/protocol/fake-chain.js'

/** A transaction of a forest. */
export interface ForestTransaction extends FakeTransaction {
  /** What it spends, each as `<txid>_<vout>`. */
  spends: string[]
  /** What each of its outputs says. */
  said: Said[]
  /** The name that it mints, and the node that it spends for it. */
  mint?: { name: string; node: string }
  /** Set where it spends a coin that nobody here can sign for: it is taken with a proof only. */
  needsProof: boolean
}

/**
 * Transactions in an order in which parents come first, of which many spend what others spend. Genesis and the purse, in
 * whose coins nothing is said, are in the first block.
 */
export interface Forest {
  chain: FakeChain
  genesis: ForestTransaction
  purse: ForestTransaction
  transactions: ForestTransaction[]
  /** All three. */
  byTxid: ReadonlyMap<string, ForestTransaction>
}

const OUTPUT_KINDS = [
  'plain',
  'owned',
  'inscribed',
  'owned inscribed',
  'child',
  'chunk',
  'set',
  'add',
  'remove',
  'larger',
  'larger inscribed',
  'empty',
] as const

/** Which coin to spend: numbers choose among what there is. */
interface Pick {
  from: 'free' | 'spent' | 'all'
  at: number
}

/** One thing that somebody does. */
export interface Planting {
  kind: 'mint' | 'move' | 'inscribe'
  node: Pick
  character: number
  /** Where the node stands among a mint's inputs. */
  position: number
  coins: Pick[]
  /** The coin of the purse that pays. */
  pays: Pick
  outputs: { kind: (typeof OUTPUT_KINDS)[number]; key: number; text: number }[]
}

const pick: fc.Arbitrary<Pick> = fc.record({
  from: fc.constantFrom('free', 'free', 'spent', 'all'),
  at: fc.nat(15),
})

export const planting: fc.Arbitrary<Planting> = fc.record({
  kind: fc.constantFrom('mint', 'mint', 'move', 'move', 'move', 'inscribe'),
  node: pick,
  character: fc.nat(1),
  position: fc.nat(2),
  coins: fc.array(pick, { maxLength: 3 }),
  pays: fc.record({
    from: fc.constantFrom('free', 'free', 'free', 'free', 'spent'),
    at: fc.nat(15),
  }),
  outputs: fc.array(fc.record({ kind: fc.constantFrom(...OUTPUT_KINDS), key: fc.nat(2), text: fc.nat(2) }), {
    minLength: 1,
    maxLength: 3,
  }),
})

const PAYING = 30
const ODD = [1, 1, 1, 0]

/** Coins of the purse that pay hold so many satoshis: more than any transaction here gives out. */
const PAY = 1000

/** Grows a forest. The same plantings give the same forest. */
export function grow(plantings: readonly Planting[]): Forest {
  const chain = new FakeChain({ difficulty: 1 })
  const open = (satoshis: number): Said => ({ satoshis, script: OPEN_LOCK })
  const purseCoins = [...Array.from({ length: PAYING }, () => open(PAY)), ...ODD.map(open)]
  const purse = finished(chain.spend({ inputs: [], outputs: purseCoins.map(outputOf) }), purseCoins)
  const root = { satoshis: 1, script: chain.node('').lockingScript, domain: '' }
  const genesis = finished(chain.genesis, [root, { satoshis: 1000, script: p2pkh(0) }])
  const byTxid = new Map([genesis, purse].map((each) => [each.txid, each]))
  const transactions: ForestTransaction[] = []
  const spent = new Set<string>()
  /** Everything but nodes and what pays. */
  const coins = ODD.map((_, i) => purse.outpoint(PAYING + i))
  const paying = Array.from({ length: PAYING }, (_, i) => purse.outpoint(i))
  const nodes = [genesis.outpoint(0)]

  const chosen = ({ from, at }: Pick, among: string[]): string | undefined => {
    const some = among.filter((each) => from === 'all' || spent.has(each) === (from === 'spent'))
    const list = some.length > 0 ? some : among
    // From the latest back, so that what has just been made goes on.
    return list[list.length - 1 - (at % list.length)]
  }
  const add = (transaction: ForestTransaction): void => {
    if (byTxid.has(transaction.txid)) return
    byTxid.set(transaction.txid, transaction)
    transactions.push(transaction)
    for (const each of transaction.spends) spent.add(each)
    for (const [vout, { domain }] of transaction.said.entries())
      (domain === undefined ? coins : nodes).push(transaction.outpoint(vout))
  }
  const saidAt = (outpoint: string): Said | undefined => {
    const { txid, vout } = parseOutpoint(outpoint)
    return byTxid.get(txid)?.said[vout]
  }
  const isLocked = (outpoint: string): boolean => {
    const script = saidAt(outpoint)?.script
    return script?.[0] === P2PKH_START
  }

  for (const { kind, node, character, position, coins: picks, pays, outputs } of plantings) {
    const payment = chosen(pays, paying)
    const held = kind === 'inscribe' ? [] : picks.flatMap((each) => chosen(each, coins) ?? [])
    // What pays stands last, so that ordinals fall into the first outputs.
    const inputs = [...new Set([...held, ...(payment === undefined ? [] : [payment])])]
    const needsProof = inputs.some(isLocked)
    const funding = inputs.map(parseOutpoint)
    if (kind === 'mint') {
      const outpoint = chosen(node, nodes)
      const from = outpoint === undefined ? undefined : nodeAt(outpoint, saidAt(outpoint))
      const letter = from && freeCharacter(from, character)
      if (from === undefined || letter === undefined) continue
      const [extra] = outputs
      const trailing = extra === undefined ? [] : [saying({ ...extra, kind: 'larger inscribed' })]
      const ownerLock = extra?.kind.startsWith('owned') ? p2pkh(extra.key) : OPEN_LOCK
      const minted = chain.mint(from.domain + letter, {
        from,
        character: letter,
        funding,
        nodeInputPosition: Math.min(position, funding.length),
        ownerLock,
        trailing: trailing.map(outputOf),
      })
      const name = from.domain + letter
      const scripts = minted.transaction.outputs.map(({ lockingScript }) => lockingScript)
      const nodeSaid = (vout: number, domain: string): Said => ({
        satoshis: 1,
        script: scripts[vout] ?? new Uint8Array(),
        domain,
      })
      const nameSaid: Said = {
        satoshis: 1,
        script: scripts[2] ?? new Uint8Array(),
        content: { contentType: chain.deployment.nameContentType, body: utf8(name) },
        ...(extra?.kind.startsWith('owned') && { owner: ownerOf(extra.key) }),
      }
      const said = [nodeSaid(0, from.domain), nodeSaid(1, name), nameSaid, ...trailing]
      add({ ...finished(minted, said), needsProof, mint: { name, node: formatOutpoint(from.outpoint) } })
    } else {
      const made =
        kind === 'inscribe' ? outputs.map((each) => ({ ...each, kind: inscribing(each.kind) })) : outputs
      const said = made.map(saying)
      add({ ...finished(chain.spend({ inputs: funding, outputs: said.map(outputOf) }), said), needsProof })
    }
  }
  return { chain, genesis, purse, transactions, byTxid }
}

const P2PKH_START = 0x76

function finished(transaction: FakeTransaction, said: Said[]): ForestTransaction {
  const spends = transaction.transaction.inputs.map(({ txid, vout }) => formatOutpoint({ txid, vout }))
  return { ...transaction, spends, said, needsProof: false }
}

function nodeAt(outpoint: string, said: Said | undefined): (FakeNode & { domain: string }) | undefined {
  if (said?.domain === undefined) return undefined
  const at: Outpoint = parseOutpoint(outpoint)
  return { outpoint: at, satoshis: 1, lockingScript: said.script, domain: said.domain }
}

/** One of a few characters that the node does not say are claimed. */
function freeCharacter(node: FakeNode, at: number): string | undefined {
  const { claimed } = decodeMineNode(node.lockingScript)
  const free = ['a', 'b'].filter((character) => !isClaimed(claimed, character.charCodeAt(0)))
  return free[at % free.length]
}
