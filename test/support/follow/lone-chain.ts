import fc from 'fast-check'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { FakeChain, type FakeTransaction, inscriptionScript, OPEN_LOCK } from '../protocol/fake-chain.js'

/** One transaction; numbers choose. */
interface Step {
  /** How many coins are spent, and which. */
  coins: number[]
  /** The outputs: what remains is divided among them and change. */
  outputs: ('one' | 'inscribed' | 'more')[]
  /** Whether what remains goes first. */
  changeFirst: boolean
}

/** A random chain, and what a client and the network do with it. */
export interface LonePlan {
  steps: Step[]
  /** In which order transactions are submitted, and which of them at all. */
  order: number[]
  /** Which transactions the source lacks, and for how many questions: two are one attempt, and each takes longer to be repeated. */
  lacking: { which: number; questions: number }[]
  /** After which submissions the service is restarted or killed. */
  restarts: number[]
  /** Which answers of the source go wrong. */
  faults: number[]
}

const MAX_STEPS = 24

const step = fc.record<Step>({
  coins: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
  outputs: fc.array(fc.constantFrom('one', 'one', 'inscribed', 'more'), { minLength: 1, maxLength: 4 }),
  changeFirst: fc.boolean(),
})

export const lonePlan: fc.Arbitrary<LonePlan> = fc.record({
  steps: fc.array(step, { minLength: 6, maxLength: MAX_STEPS }),
  order: fc.array(fc.nat(), { minLength: 4, maxLength: 14 }),
  lacking: fc.array(fc.record({ which: fc.nat(), questions: fc.nat(2) }), { maxLength: 2 }),
  restarts: fc.array(fc.nat(14), { maxLength: 2 }),
  faults: fc.array(fc.nat(60), { maxLength: 4 }),
})

interface Output {
  satoshis: number
  isInscribed: boolean
  /** The 1-sat coin that it received. */
  received?: string
  transaction: FakeTransaction
  vout: number
}

/** A chain of splits, merges, inscriptions and transfers, with the lineage of each of its outputs. */
export class LoneChain {
  readonly chain = new FakeChain()
  readonly transactions: FakeTransaction[] = []
  /** By outpoint. */
  readonly outputs = new Map<string, Output>()
  private readonly unspent: string[] = []
  private readonly moved = new Map<string, string>()

  constructor(steps: readonly Step[]) {
    for (let purse = 0; purse < 6; purse++) {
      const satoshis = 5 + 3 * purse
      this.add([], [{ satoshis, isInscribed: false }])
    }
    for (const each of steps) this.take(each)
  }

  /** The places of the ordinal in an output, from the first 1-sat coin to the last. */
  lineage(outpoint: string): string[] {
    const places = [outpoint]
    for (let at = this.outputs.get(outpoint)?.received; at !== undefined; at = this.outputs.get(at)?.received)
      places.unshift(at)
    for (let at = this.moved.get(outpoint); at !== undefined; at = this.moved.get(at)) places.push(at)
    return places
  }

  private take({ coins, outputs, changeFirst }: Step): void {
    const spent = coins.flatMap((choice) => this.unspent.splice(choice % Math.max(1, this.unspent.length), 1))
    const total = spent.reduce((sum, each) => sum + (this.outputs.get(each)?.satoshis ?? 0), 0)
    let left = total
    const made: Pick<Output, 'satoshis' | 'isInscribed'>[] = []
    for (const kind of outputs) {
      const satoshis = kind === 'more' ? 2 : 1
      if (left < satoshis) break
      left -= satoshis
      made.push({ satoshis, isInscribed: kind === 'inscribed' })
    }
    if (left > 0) made[changeFirst ? 'unshift' : 'push']({ satoshis: left, isInscribed: false })
    if (spent.length > 0 && made.length > 0) this.add(spent, made)
  }

  private add(spent: string[], made: Pick<Output, 'satoshis' | 'isInscribed'>[]): void {
    const number = this.transactions.length
    const transaction = this.chain.spend({
      inputs: spent.map((each) => {
        const { transaction, vout } = this.outputs.get(each) as Output
        return { transaction, vout }
      }),
      outputs: made.map(({ satoshis, isInscribed }, vout) => ({
        satoshis,
        lockingScript: isInscribed
          ? inscriptionScript({ contentType: 'text/plain', body: utf8(`${number} ${vout}`), lock: OPEN_LOCK })
          : OPEN_LOCK,
      })),
    })
    this.transactions.push(transaction)
    // Satoshis are numbered through; a 1-sat output received a 1-sat coin if it has that coin's satoshi.
    const coinAt = new Map<number, string>()
    let position = 0
    for (const each of spent) {
      const { satoshis } = this.outputs.get(each) as Output
      if (satoshis === 1) coinAt.set(position, each)
      position += satoshis
    }
    position = 0
    for (const [vout, output] of made.entries()) {
      const outpoint = transaction.outpoint(vout)
      const received = output.satoshis === 1 ? coinAt.get(position) : undefined
      this.outputs.set(outpoint, { ...output, ...(received && { received }), transaction, vout })
      if (received !== undefined) this.moved.set(received, outpoint)
      this.unspent.push(outpoint)
      position += output.satoshis
    }
  }
}

/** What a host answers about an output: where the ordinal is at each step from its origin on; undefined if it is none. */
export function expectedPlaces(
  world: LoneChain,
  outpoint: string,
  isStored: (transaction: FakeTransaction) => boolean,
): string[] | undefined {
  const lineage = world.lineage(outpoint)
  const output = (at: number): Output => world.outputs.get(lineage[at] ?? '') as Output
  const own = lineage.indexOf(outpoint)
  const isKnown = (at: number): boolean => at < lineage.length && isStored(output(at).transaction)
  // An output is part of an ordinal here if what was inscribed before is stored, and all between.
  let inscribed = own
  while (inscribed >= 0 && isKnown(inscribed) && !output(inscribed).isInscribed) inscribed--
  if (inscribed < 0 || !isKnown(inscribed)) return undefined
  const origin = lineage.findIndex((_, at) => output(at).isInscribed)
  let tip = own
  while (isKnown(tip + 1)) tip++
  return lineage.slice(origin, tip + 1)
}
