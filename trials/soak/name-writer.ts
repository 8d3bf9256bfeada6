import {
  beefOf,
  type FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../test/support/protocol/fake-chain.js'
import type { Random } from '../../test/support/random.js'
import type { Name, Written } from './reader.js'
import type { Submit } from './submit.js'

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz0123456789-']
const MAX_LENGTH = 12

/** Mines names below one that is its own. */
export class NameWriter {
  /** What made the live node of each domain. */
  private readonly makers = new Map<string, FakeTransaction>()

  constructor(
    private readonly options: {
      /** A letter that no other writer has. */
      letter: string
      chain: FakeChain
      random: Random
      submit: Submit
      written: Written
    },
  ) {
    this.makers.set('', options.chain.genesis)
  }

  /** Does one thing, and returns when the server has answered for it. */
  async write(): Promise<void> {
    const { letter, random, written } = this.options
    const parent = random.pick(written.names)?.name
    const name = parent === undefined ? letter : parent + (random.pick(LETTERS) ?? 'a')
    if (name.length > MAX_LENGTH || written.names.some((known) => known.name === name)) return
    if (random.next() < 0.6) await this.mine(name)
    else await this.contend(name)
  }

  private async mine(name: string): Promise<void> {
    const mint = this.options.chain.mint(name)
    await this.send(this.named(name), mint, beefOf(mint), [0, 1, 2])
    this.made(name, mint)
  }

  /**
   * Mines a name without a block; another mint of it without one loses. One in a block counts, until the first is in a
   * block below that.
   */
  private async contend(name: string): Promise<void> {
    const { chain, submit, written } = this.options
    const domain = name.slice(0, -1)
    const maker = this.makers.get(domain) ?? chain.genesis
    const from = chain.node(domain)
    const [own, other, third] = [1, 2, 3].map((owner) => {
      const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
      const coins = [{ transaction: funding, vout: 0 }]
      const mint = chain.mint(name, { funding: coins, ownerLock: p2pkh(owner), ...(owner > 1 && { from }) })
      return { mint, unproven: () => beefOf(mint, { proven: false, with: [maker, funding] }) }
    })
    if (own === undefined || other === undefined || third === undefined) return
    const known = this.named(name)
    await this.send(known, own.mint, own.unproven(), [0, 1, 2])
    await submit({ beef: third.unproven(), topics: ['tm_names'], conflictsWith: own.mint.txid })
    written.refuse(third.mint.outpoint(2))
    const { height } = other.mint
    await this.send(known, other.mint, beefOf(other.mint, { height }), [0, 1, 2])
    await this.send(known, own.mint, beefOf(own.mint, { height: height - 1 }), [0, 1, 2])
    written.refuse(other.mint.outpoint(2))
    this.made(name, { ...own.mint, height: height - 1 })
  }

  private named(name: string): Name {
    const named = { name, origins: [], answered: -1 }
    this.options.written.names.push(named)
    return named
  }

  /** The name is as before or from this mint until the server has answered, and then from this mint. */
  private async send(name: Name, mint: FakeTransaction, beef: Uint8Array, admits: number[]): Promise<void> {
    name.origins.push(mint.outpoint(2))
    await this.options.submit({ beef, topics: ['tm_names'], admits })
    name.answered = name.origins.length - 1
  }

  private made(name: string, mint: FakeTransaction): void {
    this.makers.set(name.slice(0, -1), mint)
    this.makers.set(name, mint)
  }
}
