import { concatBytes } from '../../backend/src/protocol/bytes.js'
import {
  beefOf,
  bitcomTail,
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../test/support/protocol/fake-chain.js'
import type { Random } from '../../test/support/random.js'
import { bodyOf, type Ordinal, type State, type Step } from './ordinal.js'
import type { Written } from './reader.js'
import type { BringProof, Submit } from './submit.js'

/** A transaction of an ordinal that may still be spent, beside, or proven. */
interface Link {
  transaction: FakeTransaction
  /** Of the block that holds it, once that has been said. */
  height?: number
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
      bringProof: BringProof
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
    if (chance < 0.55) await this.move(living)
    else if (chance < 0.7) await this.prove(living)
    else if (chance < 0.8) await this.spendTwice(living)
    else if (chance < 0.93) await this.reorganise(living)
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
    const ordinal: Ordinal = { origin: `${txid}_0`, isStream, states: [], answered: -1 }
    const living = { ordinal, links: [{ transaction, height }] }
    await this.sendChange(ordinal, [{ txid, height, ...said }], () =>
      submit({ beef: beefOf(transaction, { with: [funding] }), topics: ['tm_ordinals'], admits: [0] }),
    )
    this.living.push(living)
  }

  /** Spends it into its next step. */
  private async move({ ordinal, links }: Living): Promise<void> {
    const { random, submit } = this.options
    const { transaction, step } = this.nextOf(ordinal, links.at(-1))
    const unproven = links.filter(({ height }) => height === undefined)
    const isProven = unproven.length === 0 && random.next() < 0.6
    // Of unproven ones, so many come with the next.
    if (unproven.length >= MAX_UNPROVEN) return
    const link: Link = { transaction, ...(isProven && { height: transaction.height }) }
    await this.sendChange(ordinal, [...stateOf(ordinal), { ...step, height: link.height }], () =>
      submit({ beef: linkedBeef(links, link), topics: ['tm_ordinals'], admits: [0] }),
    )
    if (isProven) links.splice(0, links.length - 1)
    links.push(link)
  }

  /** Sends the first that is not proven once more, with its proof. */
  private async prove({ ordinal, links }: Living): Promise<void> {
    const first = links.findIndex(({ height }) => height === undefined)
    const link = links[first]
    if (link === undefined) return
    await this.proveAt(ordinal, link, link.transaction.height)
    links.splice(0, first - 1)
  }

  private async proveAt(ordinal: Ordinal, link: Link, height: number): Promise<void> {
    const { random, submit, bringProof } = this.options
    const { transaction } = link
    const state = stateOf(ordinal).map((step) =>
      step.txid === transaction.txid ? { ...step, height } : step,
    )
    await this.sendChange(ordinal, state, async () => {
      const beef = beefOf(transaction, { height })
      if (random.next() < 0.5) await submit({ beef, topics: ['tm_ordinals'], admits: [0] })
      else await bringProof({ txid: transaction.txid, height })
    })
    link.height = height
  }

  /** Spends once more what the last step spends: that loses against it. */
  private async spendTwice({ ordinal, links }: Living): Promise<void> {
    const { submit, written } = this.options
    const last = links.at(-1)
    const before = links.at(-2)
    if (last === undefined || before === undefined) return
    const { transaction } = this.nextOf(ordinal, before)
    const beef = linkedBeef(links.slice(0, -1), { transaction })
    await submit({ beef, topics: ['tm_ordinals'], conflictsWith: last.transaction.txid })
    written.refuse(transaction.outpoint(0))
  }

  /**
   * Spends once more what one of the last steps spends, in a block below theirs: that counts, and they do not any more. Now
   * and then one of them turns up in a block below that, and all is as it was.
   */
  private async reorganise({ ordinal, links }: Living): Promise<void> {
    const { random, submit, written } = this.options
    if (links.length < 2) return
    const at = 1 + random.below(links.length - 1)
    const [losers, kept] = [links.slice(at), links.slice(0, at)]
    const { transaction, step } = this.nextOf(ordinal, kept.at(-1))
    const height = Math.min(transaction.height, ...losers.flatMap((link) => link.height ?? [])) - 1
    const before = stateOf(ordinal)
    const reorganised = [...before.slice(0, before.length - losers.length), { ...step, height }]
    const winner: Link = { transaction, height }
    await this.sendChange(ordinal, reorganised, () =>
      submit({ beef: linkedBeef(kept, winner), topics: ['tm_ordinals'], admits: [0] }),
    )
    const back =
      random.next() < 0.4 ? random.pick(losers.filter((link) => link.height === undefined)) : undefined
    if (back === undefined) {
      links.splice(at, losers.length, winner)
      for (const loser of losers) written.refuse(loser.transaction.outpoint(0))
      return
    }
    ordinal.states.push(before)
    await this.proveAt(ordinal, back, height - 1)
    written.refuse(transaction.outpoint(0))
  }

  /** Sends again what is known: it is answered as it stands. */
  private async repeat({ links }: Living): Promise<void> {
    const last = links.at(-1)
    if (last === undefined) return
    const beef = linkedBeef(links.slice(0, -1), last)
    await this.options.submit({ beef, topics: ['tm_ordinals'], admits: [0] })
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
          : this.plain()
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

  /** Nothing is said that counts; but no two transactions are to be the same. */
  private plain(): Said {
    const lockingScript = concatBytes(OPEN_LOCK, bitcomTail([`${this.options.name} ${this.made++}`]))
    return { said: { map: {} }, lockingScript }
  }

  /** The ordinal is in the state before or in this one until the server has answered, and then in this one. */
  private async sendChange(ordinal: Ordinal, state: State, send: () => Promise<void>): Promise<void> {
    ordinal.states.push(state)
    this.options.written.change(ordinal)
    await send()
    ordinal.answered = ordinal.states.length - 1
  }
}

interface Said {
  said: Pick<Step, 'content' | 'map'>
  lockingScript: Uint8Array
}

/** What the ordinal is, if all that was sent is true. */
function stateOf({ states }: Ordinal): State {
  return states.at(-1) ?? []
}

/** With its ancestors down to a proven one; nothing but its parent where it is proven itself. */
function linkedBeef(links: readonly Link[], { transaction, height }: Link): Uint8Array {
  const from = links.findLastIndex((link) => link.height !== undefined)
  const needed = links.slice(height === undefined ? Math.max(from, 0) : -1)
  // In the blocks that were sent before: the last proof sent counts.
  const ancestors = needed.map((link) => ({
    isProven: link.height !== undefined,
    sent: { ...link.transaction, height: link.height ?? 0 },
  }))
  return beefOf(transaction, {
    proven: height !== undefined,
    ...(height !== undefined && { height }),
    with: ancestors.map(({ sent }) => sent),
    unproven: ancestors.filter(({ isProven }) => !isProven).map(({ sent }) => sent),
  })
}
