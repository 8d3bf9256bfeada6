import fc from 'fast-check'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { decodeMineNode, encodeMineNode, isClaimed, UNCLAIMED } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { ownerOf } from '../support/graph/owner-of.js'
import {
  inscribing,
  outputOf,
  PARENT,
  type Said,
  type OutputKind as SaidKind,
  saying,
} from '../support/graph/said-outputs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK, p2pkh } from '../support/protocol/fake-chain.js'
import {
  NON_STRICT,
  type NonStrictUnlocking,
  nonStrictlyUnlocked,
} from '../support/protocol/non-strict-mints.js'
import { FIRST_HEIGHT } from '../support/server/header-chain.js'

/** A transaction of a history, with what the test knows of it without reading a script. */
export interface HistoryTransaction extends FakeTransaction {
  /** What it spends, each as `<txid>_<vout>`, in the order of its inputs. */
  spends: string[]
  /** What each of its outputs says. */
  said: Said[]
  /** Set where it is built as a mint: the name, were the node genuine that it spends. */
  mint?: { name: string; node: string }
  /** Set where an input cannot be signed for here, or spends what nobody has: it is valid with a proof only. */
  needsProof: boolean
  /** The lowest height of a block that may be below that which holds it, if it has a lock time. */
  lockHeight?: number
}

/** A locking script that is longer takes so long to run that a host refuses what spends it, unless a block holds that. */
const MAX_RUN = 100_000

/** What histories are made of, apart from the deeds. */
export interface Shape {
  covenantVersion: 1 | 2
  /**
   * The satoshis in the outputs of each purse: those of more than one pay, and the others are coins whose own history nobody
   * knows. With many purses of few coins, what places an ordinal is often not known yet.
   */
  purses: readonly (readonly number[])[]
  /** Whether the money beside the first node pays, too: what that places waits for genesis. */
  genesisPays?: boolean
  /** The types of content that the operator's policy does not take; by default, it takes all. */
  refusedTypes?: readonly string[]
}

/** Transactions, parents first: genesis, purses that pay, and what came of the deeds. */
export interface History {
  chain: FakeChain
  genesis: HistoryTransaction
  transactions: HistoryTransaction[]
  byTxid: ReadonlyMap<string, HistoryTransaction>
  /** Genesis and the purses, whose blocks are never reorganised. */
  first: ReadonlySet<HistoryTransaction>
  refusedTypes: readonly string[]
  /** What the deeds made, and genesis: answers are read about their outputs. */
  subjects: HistoryTransaction[]
}

const OUTPUT_KINDS = [
  'plain',
  'plain',
  'owned',
  'inscribed',
  'inscribed with MAP',
  'owned inscribed',
  'child',
  'chunk',
  'set',
  'add',
  'remove',
  'larger',
  'larger inscribed',
  'empty',
  'copied node',
] as const satisfies OutputKind[]
type OutputKind = SaidKind | 'copied node'

/** Which coin to spend: numbers choose among what there is, from the latest back. */
interface Pick {
  from: 'free' | 'spent' | 'all'
  /** Whether it is a coin that an ordinal stands in, where there is one. */
  carries: boolean
  at: number
}

/** One thing that somebody does. */
export interface Deed {
  kind: 'mint' | 'move' | 'inscribe'
  node: Pick
  character: number
  /** Where the node stands among a mint's inputs. */
  position: number
  /** Which unlocking script a mint has that only a block decides about; beyond them, five minimal pushes. */
  unlocking: number
  coins: Pick[]
  /** Where a coin of which nobody has the transaction stands among the inputs; beyond them, there is none. */
  foreign: number
  pays: { coin: Pick; place: 'last' | 'first' | 'nowhere' }
  /** Whether a move spends a node as well, which only a block can prove. */
  burns: boolean
  /** How many blocks after the first ones have to be there before one may hold it; 0 for none. A mint has no lock time. */
  lock: number
  /** What becomes of the coins of a move: each goes on, in an output of its value; or outputs come as they do. */
  flow: 'goes on' | 'free'
  outputs: { kind: OutputKind; key: number; text: number }[]
}

/** Weights of one choice among others: `weighted({ mint: 2, move: 6 })`. */
export function weighted<Choice extends string>(weights: Record<Choice, number>): fc.Arbitrary<Choice> {
  const all = Object.entries<number>(weights)
  return fc.oneof(...all.map(([choice, weight]) => ({ weight, arbitrary: fc.constant(choice as Choice) })))
}

/** Deeds of which a trial says how often each choice is made. */
export function deedOf(varied: {
  kind: fc.Arbitrary<Deed['kind']>
  /** Whether coins and nodes to spend are free or spent: spent ones make double spends. */
  from: fc.Arbitrary<Pick['from']>
  /** The same, of the coins that pay. */
  paysFrom: fc.Arbitrary<Pick['from']>
  paysAt: fc.Arbitrary<Deed['pays']['place']>
  carries: fc.Arbitrary<boolean>
  flow: fc.Arbitrary<Deed['flow']>
  unlocking: fc.Arbitrary<number>
  foreign: fc.Arbitrary<number>
  burns?: fc.Arbitrary<boolean>
  lock?: fc.Arbitrary<number>
  coins: { minLength: number; maxLength: number }
  outputs?: fc.Arbitrary<OutputKind>
}): fc.Arbitrary<Deed> {
  const at = fc.nat(9)
  const pick = fc.record({ from: varied.from, carries: varied.carries, at })
  const kind = varied.outputs ?? fc.constantFrom(...OUTPUT_KINDS)
  const output = fc.record({ kind, key: fc.nat(2), text: fc.nat(2) })
  return fc.record({
    kind: varied.kind,
    node: pick,
    character: fc.nat(1),
    position: fc.nat(2),
    unlocking: varied.unlocking,
    coins: fc.array(pick, varied.coins),
    foreign: varied.foreign,
    pays: fc.record({
      coin: fc.record({ from: varied.paysFrom, carries: fc.constant(false), at }),
      place: varied.paysAt,
    }),
    burns: varied.burns ?? fc.constant(false),
    lock: varied.lock ?? fc.constant(0),
    flow: varied.flow,
    outputs: fc.array(output, { minLength: 1, maxLength: 4 }),
  })
}

export const TEXTS = [0, 1, 2]

/** Makes a history of deeds. The same deeds make the same history. */
export function historyOf(deeds: readonly Deed[], shape: Shape): History {
  const { covenantVersion, purses: values, refusedTypes = [], genesisPays = false } = shape
  const chain = new FakeChain({ difficulty: 1, covenantVersion })
  const root = { satoshis: 1, script: chain.node('').lockingScript, domain: '' }
  const genesis = described(
    chain.genesis,
    [root, { satoshis: 1000, script: p2pkh(0), owner: ownerOf(0) }],
    true,
  )
  const purses = values.map((each) => {
    const said = each.map((satoshis): Said => ({ satoshis, script: OPEN_LOCK }))
    return described(chain.spend({ inputs: [], outputs: said.map(outputOf) }), said, true)
  })
  const first = [genesis, ...purses]
  const byTxid = new Map(first.map((each) => [each.txid, each]))
  const grower = new Grower(chain, byTxid, { genesis, purses, genesisPays })
  for (const each of deeds) grower.grow(each)
  const { made } = grower
  return {
    chain,
    genesis,
    byTxid,
    refusedTypes,
    first: new Set(first),
    transactions: [...first, ...made],
    subjects: [genesis, ...made],
  }
}

class Grower {
  readonly made: HistoryTransaction[] = []
  private readonly spent = new Set<string>()
  /** Coins that an ordinal stands in. */
  private readonly carriers = new Set<string>()
  private readonly coins: string[]
  private readonly paying: string[]
  private readonly nodes: string[]
  /** The height of the last block of what is mined first. */
  private readonly firstHeight: number

  constructor(
    private readonly chain: FakeChain,
    private readonly byTxid: Map<string, HistoryTransaction>,
    {
      genesis,
      purses,
      genesisPays,
    }: { genesis: HistoryTransaction; purses: HistoryTransaction[]; genesisPays: boolean },
  ) {
    const coinsOf = (isPaying: boolean): string[] =>
      purses.flatMap(({ said, outpoint }) =>
        said.flatMap(({ satoshis }, vout) => (satoshis > 1 === isPaying ? [outpoint(vout)] : [])),
      )
    this.coins = coinsOf(false)
    this.paying = [...coinsOf(true), ...(genesisPays ? [genesis.outpoint(1)] : [])]
    this.nodes = [genesis.outpoint(0)]
    this.firstHeight = FIRST_HEIGHT + 1 + purses.length
  }

  grow(deed: Deed): void {
    const { kind, node, character, position, unlocking, coins, foreign, pays, flow, outputs } = deed
    const payment =
      pays.place === 'nowhere' && kind === 'move' ? undefined : this.chosen(pays.coin, this.paying)
    const held = kind === 'inscribe' ? [] : coins.flatMap((each) => this.chosen(each, this.coins) ?? [])
    const around = payment === undefined ? [] : [payment]
    const burnt = kind === 'move' && deed.burns ? this.chosen(node, this.nodes) : undefined
    if (burnt !== undefined) held.splice(position, 0, burnt)
    const known = [...new Set(pays.place === 'first' ? [...around, ...held] : [...held, ...around])]
    const unknown = foreign <= known.length ? this.chain.madeUpCoin() : undefined
    const funding = known.map(parseOutpoint)
    if (unknown !== undefined) funding.splice(foreign, 0, unknown)
    if (funding.length === 0) return
    const needsProof =
      unknown !== undefined || burnt !== undefined || known.some((each) => this.isLocked(each))
    const purse = unknown === undefined ? this.sumOf(known) : Number.POSITIVE_INFINITY
    if (kind === 'mint') {
      const outpoint = this.chosen(node, this.nodes)
      if (outpoint !== undefined)
        this.mint({
          outpoint,
          character,
          position,
          unlocking: NON_STRICT[unlocking],
          funding,
          outputs,
          purse,
          needsProof,
        })
      return
    }
    const made = outputs.map((each) =>
      this.saying({ ...each, kind: kind === 'inscribe' ? inscribing(each.kind) : each.kind }, known),
    )
    const goesOn = kind === 'move' && flow === 'goes on' && unknown === undefined
    const said = affordable(goesOn ? this.goingOn(known, made) : made, purse)
    const lockHeight = deed.lock === 0 ? undefined : this.firstHeight + deed.lock
    const transaction = this.chain.spend({
      inputs: funding,
      outputs: said.map(outputOf),
      ...(lockHeight !== undefined && { lockTime: lockHeight, sequence: 0 }),
    })
    this.add({ ...described(transaction, said, needsProof), ...(lockHeight !== undefined && { lockHeight }) })
  }

  /** An output for each coin, of its value; for every third of 1 satoshi one of those that were made, where it is worth that. */
  private goingOn(coins: string[], made: Said[]): Said[] {
    const outputs = coins.flatMap((coin, i): Said[] => {
      const { satoshis } = this.saidAt(coin)
      const own = made[i % made.length]
      if (satoshis !== 1) return satoshis === 0 ? [] : [{ satoshis, script: OPEN_LOCK }]
      return [own?.satoshis === 1 && (i + this.made.length) % 3 === 0 ? own : { satoshis, script: OPEN_LOCK }]
    })
    return outputs.length > 0 ? outputs : [{ satoshis: 0, script: OPEN_LOCK }]
  }

  private mint(options: {
    outpoint: string
    character: number
    position: number
    unlocking: NonStrictUnlocking | undefined
    funding: Outpoint[]
    outputs: Deed['outputs']
    purse: number
    needsProof: boolean
  }): void {
    const { outpoint, funding, purse, unlocking } = options
    const needsProof = options.needsProof || unlocking !== undefined
    const { domain, script } = this.saidAt(outpoint)
    if (domain === undefined) throw new Error(`no node stands in ${outpoint}`)
    const { claimed } = decodeMineNode(script)
    const free = ['a', 'b'].filter((each) => !isClaimed(claimed, each.charCodeAt(0)))
    const letter = free[options.character % free.length]
    // The node brings one satoshi, and three go into what the covenant asks for.
    if (letter === undefined || purse < 2) return
    const [extra] = options.outputs
    const isOwned = extra?.kind.startsWith('owned') ?? false
    const own = unlocking?.overrides?.trailing?.map(
      ({ satoshis, lockingScript }): Said => ({ satoshis, script: lockingScript }),
    )
    const made = options.outputs.slice(1).map((each) => this.saying(each, funding.map(formatOutpoint)))
    const said = own ?? affordable(made, purse - 2)
    const name = domain + letter
    const minted = this.chain.mint(name, {
      from: { outpoint: parseOutpoint(outpoint), satoshis: 1, lockingScript: script },
      character: letter,
      funding,
      nodeInputPosition: Math.min(options.position, funding.length),
      ownerLock: isOwned && extra ? p2pkh(extra.key) : OPEN_LOCK,
      trailing: said.map(outputOf),
      ...(unlocking && nonStrictlyUnlocked(unlocking)),
    })
    const scripts = minted.transaction.outputs.map(({ lockingScript }) => lockingScript)
    const bound = (vout: number, more: Partial<Said>): Said => ({
      satoshis: 1,
      script: scripts[vout] ?? new Uint8Array(),
      ...more,
    })
    const { nameContentType: contentType } = this.chain.deployment
    const all = [
      bound(0, { domain }),
      bound(1, { domain: name }),
      bound(2, {
        content: { contentType, body: utf8(name) },
        ...(isOwned && extra && { owner: ownerOf(extra.key) }),
      }),
      ...said,
    ]
    this.add({ ...described(minted, all, needsProof), mint: { name, node: outpoint } })
  }

  private add(transaction: HistoryTransaction): void {
    if (this.byTxid.has(transaction.txid)) return
    this.byTxid.set(transaction.txid, transaction)
    this.made.push(transaction)
    for (const each of transaction.spends) this.spent.add(each)
    for (const [vout, { satoshis, domain, content }] of transaction.said.entries()) {
      const outpoint = transaction.outpoint(vout)
      ;(domain === undefined ? this.coins : this.nodes).push(outpoint)
      if (satoshis === 1 && (content !== undefined || this.continues(transaction, vout)))
        this.carriers.add(outpoint)
    }
  }

  /** Whether a 1-sat output continues a coin that an ordinal stands in, as far as everything is known. */
  private continues({ spends, said }: HistoryTransaction, vout: number): boolean {
    const start = said.slice(0, vout).reduce((sum, { satoshis }) => sum + satoshis, 0)
    let before = 0
    for (const spent of spends) {
      if (before === start && this.carriers.has(spent)) return true
      before += this.byTxid.has(spent.slice(0, 64)) ? this.saidAt(spent).satoshis : Number.NaN
    }
    return false
  }

  private chosen({ from, carries, at }: Pick, among: string[]): string | undefined {
    const some = among.filter((each) => from === 'all' || this.spent.has(each) === (from === 'spent'))
    const carrying = some.filter((each) => this.carriers.has(each))
    const wanted = carries && carrying.length > 0 ? carrying : some
    const list = wanted.length > 0 ? wanted : among
    return list[list.length - 1 - (at % list.length)]
  }

  private saidAt(outpoint: string): Said {
    const said = this.byTxid.get(outpoint.slice(0, 64))?.said[Number(outpoint.slice(65))]
    if (said === undefined) throw new Error(`no such output in this history: ${outpoint}`)
    return said
  }

  private isLocked(outpoint: string): boolean {
    const { owner, script } = this.saidAt(outpoint)
    return owner !== undefined || script.length > MAX_RUN
  }

  private sumOf(outpoints: string[]): number {
    return outpoints.reduce((sum, each) => sum + this.saidAt(each).satoshis, 0)
  }

  private saying({ kind, ...said }: Deed['outputs'][number], spent: string[]): Said {
    return kind === 'copied node'
      ? this.copiedNode(said.key)
      : saying({ kind, ...said, parents: this.parentsFor(spent) })
  }

  /** What a transaction spends, what that was before, and outputs that have nothing to do with it. */
  private parentsFor(spent: string[]): string[] {
    const before = (outpoint: string): string[] =>
      this.made.find(({ txid }) => txid === outpoint.slice(0, 64))?.spends ?? []
    const earlier = spent.flatMap(before)
    return [
      ...spent,
      ...earlier,
      ...earlier.flatMap(before),
      ...this.made.slice(-2).map(({ txid }) => `${txid}_0`),
      PARENT,
    ]
  }

  /** The covenant with a state that no mint has left: by its script as good as any node. */
  private copiedNode(key: number): Said {
    const { code } = decodeMineNode(this.chain.node('').lockingScript)
    const domain = ['', 'a', 'b'][key] ?? ''
    const { genesis } = this.chain.deployment
    const state = { code, genesis, claimed: UNCLAIMED, domain, seed: new Uint8Array(32).fill(key) }
    return { satoshis: 1, script: encodeMineNode(state), domain }
  }
}

function described(transaction: FakeTransaction, said: Said[], needsProof: boolean): HistoryTransaction {
  const spends = transaction.transaction.inputs.map(({ txid, vout }) => formatOutpoint({ txid, vout }))
  return { ...transaction, spends, said, needsProof }
}

/** As many of the outputs as there is money for. */
function affordable(outputs: Said[], purse: number): Said[] {
  let left = purse
  return outputs.map((each) => {
    const isPaid = each.satoshis <= left
    if (isPaid) left -= each.satoshis
    return isPaid ? each : { satoshis: 0, script: OPEN_LOCK }
  })
}
