import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import fc from 'fast-check'
import { concatBytes, fromHex, reversed, utf8 } from '../../../backend/src/protocol/bytes.js'
import { isName, NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import { type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import NamesTopicManager from '../../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import {
  beefOf,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../protocol/fake-chain.js'

/** When a transaction is known to be mined: in its own BEEF, only in those of its descendants, or in none. */
export type Mined = 'at once' | 'later' | 'never'

/** What the engine tells a lookup service. */
export type Notice = { admitted: OutputAdmittedByTopic } | { spent: OutputSpent }

interface Step {
  transaction: FakeTransaction
  mined: Mined
}

const ATOMIC = fromHex('01010101')

/**
 * Transactions submitted one after another to both topics, and the notices that an engine gives of them in its whole-tx
 * mode: BEEF as the SDK writes it, which stops at the first proven transaction.
 */
export class History {
  readonly chain = new FakeChain()
  /** In the order in which an engine would send them. */
  readonly notices: Notice[] = []
  private readonly steps = new Map<string, Step>()
  /** What each topic holds, by outpoint. */
  private readonly held = { [TOPICS.names]: new Set<string>(), [TOPICS.ordinals]: new Set<string>() }
  private readonly managers = {
    [TOPICS.names]: new NamesTopicManager({ deployment: this.chain.deployment }),
    [TOPICS.ordinals]: new OrdinalsTopicManager({ seen: undefined }),
  }

  /** A transaction that is known to later ones, but that nobody submits. */
  know(transaction: FakeTransaction): FakeTransaction {
    this.steps.set(transaction.txid, { transaction, mined: 'at once' })
    return transaction
  }

  /** Submits a transaction to both topics. */
  async submit(transaction: FakeTransaction, mined: Mined = 'at once'): Promise<FakeTransaction> {
    const { inputs } = transaction.transaction
    const sources = [...new Set(inputs.map(({ txid }) => txid))].flatMap((txid) => this.known(txid))
    this.steps.set(transaction.txid, { transaction, mined })
    const atomicBEEF = Array.from(this.beefOf(transaction))
    for (const topic of [TOPICS.names, TOPICS.ordinals]) {
      const held = this.held[topic]
      const previousCoins = inputs.flatMap(({ txid, vout }, i) => (held.has(`${txid}_${vout}`) ? [i] : []))
      const beef = beefOf(transaction, { with: sources })
      const { outputsToAdmit } = await this.managers[topic].identifyAdmissibleOutputs(beef, previousCoins)
      for (const coin of previousCoins.flatMap((i) => inputs[i] ?? [])) {
        const { txid, vout: outputIndex } = coin
        this.notices.push({
          spent: { mode: 'whole-tx', topic, txid, outputIndex, spendingAtomicBEEF: atomicBEEF },
        })
      }
      for (const outputIndex of outputsToAdmit) {
        held.add(transaction.outpoint(outputIndex))
        this.notices.push({ admitted: { mode: 'whole-tx', topic, outputIndex, atomicBEEF } })
      }
    }
    return transaction
  }

  /** The outpoints that `tm_ordinals` holds, in the order of their admission. */
  get ordinals(): Outpoint[] {
    return [...this.held[TOPICS.ordinals]].map(parseOutpoint)
  }

  /** All that were submitted, and what they spend, parents first. */
  get transactions(): FakeTransaction[] {
    return [...this.steps.values()].map(({ transaction }) => transaction)
  }

  private known(txid: string): FakeTransaction[] {
    const step = this.steps.get(txid)
    return step === undefined ? [] : [step.transaction]
  }

  private beefOf(subject: FakeTransaction): Uint8Array {
    const proven = this.steps.get(subject.txid)?.mined === 'at once'
    const ancestors = new Map<string, FakeTransaction>()
    const visit = (transaction: FakeTransaction): void => {
      for (const { txid } of transaction.transaction.inputs) {
        const step = ancestors.has(txid) ? undefined : this.steps.get(txid)
        if (step === undefined) continue
        if (step.mined === 'never') visit(step.transaction)
        ancestors.set(txid, step.transaction)
      }
    }
    if (!proven) visit(subject)
    const unproven = [...ancestors.values()].filter(({ txid }) => this.steps.get(txid)?.mined === 'never')
    const beef = beefOf(subject, { proven, with: [...ancestors.values()], unproven })
    return concatBytes(ATOMIC, reversed(fromHex(subject.txid)), beef)
  }
}

/** One thing that somebody does; numbers choose among what there is. */
interface Deed {
  kind: 'mint' | 'inscribe' | 'move' | 'burn'
  mined: Mined
  /** What to mint below, and which character. */
  domain: number
  character: number
  nodeInputPosition: number
  /** Coins to spend: held ones, or plain ones of other values. */
  coins: ({ held: number } | { satoshis: number })[]
  outputs: ('plain' | 'larger' | 'empty' | 'inscribed' | 'larger inscribed' | 'map')[]
}

/** Some {@link Deed}. */
export const deed: fc.Arbitrary<Deed> = fc.record({
  kind: fc.constantFrom('mint', 'inscribe', 'move', 'move', 'move', 'burn'),
  mined: fc.constantFrom('at once', 'at once', 'later', 'never'),
  domain: fc.nat(20),
  character: fc.nat({ max: 3 }),
  nodeInputPosition: fc.nat(2),
  coins: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ held: fc.nat(20) }) },
      { weight: 1, arbitrary: fc.record({ satoshis: fc.constantFrom(0, 1, 1, 6) }) },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  outputs: fc.array(
    fc.constantFrom('plain', 'plain', 'plain', 'inscribed', 'map', 'larger', 'empty', 'larger inscribed'),
    { minLength: 1, maxLength: 4 },
  ),
})

const inscribed = (body: string): Uint8Array =>
  inscriptionScript({ contentType: 'text/plain', body: utf8(body) })

/** An output; `body` is what is inscribed. */
export function outputOf(kind: Deed['outputs'][number], body: string): FakeOutput {
  switch (kind) {
    case 'plain':
      return { satoshis: 1, lockingScript: p2pkh(3) }
    case 'larger':
      return { satoshis: 5, lockingScript: p2pkh(3) }
    case 'empty':
      return { satoshis: 0, lockingScript: p2pkh(3) }
    case 'inscribed':
      return { satoshis: 1, lockingScript: inscribed(body) }
    case 'larger inscribed':
      return { satoshis: 4, lockingScript: inscribed(body) }
    case 'map':
      return { satoshis: 1, lockingScript: concatBytes(p2pkh(3), mapTail({ body })) }
  }
}

/** What came of a list of deeds. */
export async function historyOf(deeds: Deed[]): Promise<History> {
  const history = new History()
  const { chain } = history
  await history.submit(chain.genesis)
  const domains = ['']
  const spent = new Set<string>()
  for (const { kind, mined, domain, character, nodeInputPosition, coins, outputs } of deeds) {
    const nodes = new Set(domains.map((each) => JSON.stringify(chain.node(each).outpoint)))
    const free = history.ordinals.filter((coin) => {
      const key = JSON.stringify({ txid: coin.txid, vout: coin.vout })
      return !spent.has(key) && !nodes.has(key)
    })
    const take = (): Outpoint[] =>
      coins.flatMap((coin) => {
        if ('held' in coin) return free.splice(coin.held % Math.max(free.length, 1), 1)
        const output = { satoshis: coin.satoshis, lockingScript: p2pkh(0) }
        const { txid } = history.know(chain.spend({ inputs: [], outputs: [output] }))
        return [{ txid, vout: 0 }]
      })
    const inputs = kind === 'inscribe' ? [] : take()
    const submit = async (transaction: FakeTransaction): Promise<void> => {
      // The node that a mint spends as well: no coin is spent twice here.
      for (const { txid, vout } of transaction.transaction.inputs) spent.add(JSON.stringify({ txid, vout }))
      await history.submit(transaction, mined)
    }
    const body = NAME_CHARACTERS[character] ?? ''
    if (kind === 'mint') {
      const name = (domains[domain % domains.length] ?? '') + body
      if (!isName(name) || domains.includes(name)) continue
      domains.push(name)
      const position = Math.min(nodeInputPosition, inputs.length)
      await submit(chain.mint(name, { funding: inputs, nodeInputPosition: position }))
    } else if (kind === 'burn') {
      await submit(chain.spend({ inputs, outputs: [outputOf('larger', '')] }))
    } else {
      const made = outputs.map((each) => outputOf(kind === 'inscribe' ? 'inscribed' : each, body))
      await submit(chain.spend({ inputs, outputs: made }))
    }
  }
  return history
}
