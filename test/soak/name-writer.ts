import { beefOf, type FakeChain } from '../support/fake-chain.js'
import type { Random } from './random.js'
import type { Written } from './reader.js'
import type { Submit } from './submit.js'

/** A name and where it was mined; settled once the server has answered for it. */
export interface Name {
  name: string
  origin: string
  isSettled: boolean
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-'
const MAX_LENGTH = 12

/** Mines names below one that is its own. */
export class NameWriter {
  constructor(
    private readonly options: {
      /** A letter that no other writer has. */
      letter: string
      chain: FakeChain
      random: Random
      submit: Submit
      written: Written
    },
  ) {}

  async write(): Promise<void> {
    const { letter, chain, random, submit, written } = this.options
    const { names } = written
    const parent = names.length === 0 ? '' : (random.pick(names)?.name ?? '')
    const name = parent === '' ? letter : parent + (random.pick([...LETTERS]) ?? 'a')
    if (name.length > MAX_LENGTH || names.some((known) => known.name === name)) return
    const mint = chain.mint(name)
    const mined = { name, origin: mint.outpoint(2), isSettled: false }
    names.push(mined)
    await submit({ beef: beefOf(mint), topics: ['tm_names'], admits: [0, 1, 2] })
    mined.isSettled = true
  }
}
