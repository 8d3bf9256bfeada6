import { concatBytes } from '../../backend/src/protocol/bytes.js'
import {
  beefOf,
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../support/fake-chain.js'
import { bodyOf, type Ordinal, type State, type Step } from './ordinal.js'
import type { Random } from './random.js'
import type { Written } from './reader.js'
import type { Submit } from './submit.js'

/** A transaction of an ordinal that may still be spent, beside, or proven. */
interface Link {
  transaction: FakeTransaction
  isProven: boolean
}

/** An ordinal with what it takes to go on. */
interface Living {
  ordinal: Ordinal
  /** From a proven transaction on; the last is where the ordinal is. */
  links: Link[]
}

/** How many an ordinal makes before it is left as it is: what a state holds is bounded so. */
const MAX_STEPS = 24
/** How many are written on at a time. */
const MAX_LIVING = 12
/** The longest chain of unproven ones. */
const MAX_UNPROVEN = 4
const MAX_BODY_BYTES = 3000

/** Makes ordinals, and things happen to them, one after the other; knows what each has become. */
export class OrdinalWriter {
  private readonly living: Living[] = []
  private made = 0

  constructor(
    private readonly options: {
      /** Tells its content from that of other writers. */
      name: string
      chain: FakeChain
      random: Random
      submit: Submit
      written: Written
    },
  ) {}

  /** Does one thing, and returns when the server has answered for it. */
  async write(): Promise<void> {
    const { random } = this.options
    if (this.living.length < MAX_LIVING) {
      await this.inscribe()
      return
    }
    const living = random.pick(this.living)
    if (living === undefined) return
    const chance = random.next()
    if (chance < 0.6) await this.move(living)
    else if (chance < 0.75) await this.prove(living)
    else if (chance < 0.9) await this.spendTwice(living)
    else await this.repeat(living)
    if ((living.ordinal.states.at(-1)?.length ?? 0) >= MAX_STEPS)
      this.living.splice(this.living.indexOf(living), 1)
  }

  private async inscribe(): Promise<void> {
    const { chain, random, submit } = this.options
    const isStream = random.next() < 0.3
    const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: p2pkh(0) }] })
    const { said, lockingScript } = this.inscription(isStream ? 'audio/x-soak' : 'text/plain')
    const inputs = [{ transaction: funding, vout: 0 }]
    const transaction = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    const { txid, height } = transaction
    const ordinal: Ordinal = { origin: `${txid}_0`, isStream, states: [], settled: -1 }
    const living = { ordinal, links: [{ transaction, isProven: true }] }
    await this.settle(ordinal, [{ txid, height, ...said }], () =>
      submit({ beef: beefOf(transaction, { with: [funding] }), topics: ['tm_ordinals'], admits: [0] }),
    )
    this.living.push(living)
  }

  /** Spends it into its next step. */
  private async move({ ordinal, links }: Living): Promise<void> {
    const { random, submit } = this.options
    const next = this.nextOf(ordinal, links.at(-1))
    const unproven = links.filter(({ isProven }) => !isProven)
    const isProven = unproven.length >= MAX_UNPROVEN - 1 || random.next() < 0.6
    const { transaction, step } = next
    const proven = isProven && unproven.length === 0
    const state = [
      ...(ordinal.states.at(-1) ?? []),
      { ...step, ...(proven && { height: transaction.height }) },
    ]
    await this.settle(ordinal, state, () =>
      submit({ beef: linkedBeef(links, transaction, proven), topics: ['tm_ordinals'], admits: [0] }),
    )
    if (proven) links.splice(0)
    links.push({ transaction, isProven: proven })
  }

  /** Sends the first that is not proven once more, with its proof. */
  private async prove({ ordinal, links }: Living): Promise<void> {
    const first = links.findIndex(({ isProven }) => !isProven)
    const link = links[first]
    if (link === undefined) return
    const { transaction } = link
    const { txid, height } = transaction
    const state = (ordinal.states.at(-1) ?? []).map((step) =>
      step.txid === txid ? { ...step, height } : step,
    )
    await this.settle(ordinal, state, () =>
      this.options.submit({ beef: beefOf(transaction), topics: ['tm_ordinals'], admits: [] }),
    )
    link.isProven = true
    links.splice(0, first)
  }

  /** Spends once more what the last step spends: that loses against it. */
  private async spendTwice({ ordinal, links }: Living): Promise<void> {
    const last = links.at(-1)
    const before = links.at(-2)
    if (last === undefined || before === undefined) return
    const { transaction: rival } = this.nextOf(ordinal, before)
    const beef = linkedBeef(links.slice(0, -1), rival, false)
    await this.options.submit({ beef, topics: ['tm_ordinals'], conflictsWith: last.transaction.txid })
    this.options.written.refuse(rival.outpoint(0))
  }

  /** Sends again what is known: nothing comes of it. */
  private async repeat({ links }: Living): Promise<void> {
    const last = links.at(-1)
    if (last === undefined) return
    const beef = linkedBeef(links.slice(0, -1), last.transaction, last.isProven)
    await this.options.submit({ beef, topics: ['tm_ordinals'], admits: [] })
  }

  private nextOf(
    { isStream }: Ordinal,
    from: Link | undefined,
  ): { transaction: FakeTransaction; step: Step } {
    const { chain, random } = this.options
    if (from === undefined) throw new Error('an ordinal has a transaction')
    const chance = isStream ? 0 : random.next()
    const { said, lockingScript } =
      chance < 0.4
        ? this.inscription(isStream ? 'gw/stream' : 'text/plain')
        : chance < 0.8
          ? this.word()
          : plain()
    const inputs = [{ transaction: from.transaction, vout: 0 }]
    const transaction = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    return { transaction, step: { txid: transaction.txid, ...said } }
  }

  private inscription(contentType: string): Said {
    const { name, random } = this.options
    const content = { said: `${name} ${this.made++}, `, length: 1 + random.below(MAX_BODY_BYTES) }
    const body = new Uint8Array(bodyOf({ txid: '', content, map: {} }))
    return {
      said: { content, map: {} },
      lockingScript: inscriptionScript({ contentType, body, lock: OPEN_LOCK }),
    }
  }

  private word(): Said {
    const { name, random } = this.options
    const map = { [`key ${random.below(5)}`]: `${name} ${this.made++}` }
    return { said: { map }, lockingScript: concatBytes(OPEN_LOCK, mapTail(map)) }
  }

  /** The ordinal is in the state before or in this one until the server has answered, and then in this one. */
  private async settle(ordinal: Ordinal, state: State, send: () => Promise<void>): Promise<void> {
    ordinal.states.push(state)
    this.options.written.change(ordinal)
    await send()
    ordinal.settled = ordinal.states.length - 1
  }
}

interface Said {
  said: Pick<Step, 'content' | 'map'>
  lockingScript: Uint8Array
}

function plain(): Said {
  return { said: { map: {} }, lockingScript: OPEN_LOCK }
}

/** With its ancestors down to a proven one; nothing but its parent where it is proven itself. */
function linkedBeef(links: readonly Link[], subject: FakeTransaction, proven: boolean): Uint8Array {
  const from = links.findLastIndex(({ isProven }) => isProven)
  const needed = links.slice(Math.max(from, 0))
  if (proven) return beefOf(subject, { with: needed.slice(-1).map(({ transaction }) => transaction) })
  const unproven = needed.filter(({ isProven }) => !isProven).map(({ transaction }) => transaction)
  return beefOf(subject, { proven, with: needed.map(({ transaction }) => transaction), unproven })
}
