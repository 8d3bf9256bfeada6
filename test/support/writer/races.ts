import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { recordOf } from '../protocol/block.js'
import { type FakeChain, type FakeTransaction, inscriptionScript, p2pkh } from '../protocol/fake-chain.js'
import type { Random } from '../random.js'
import { type Gateway, type Gateways, submit } from './gateways.js'

/** Transactions that spend a coin, and what they are built on. */
interface Race {
  spenders: FakeTransaction[]
  /** What each is submitted with, beside itself. */
  along: FakeTransaction[][]
}

/** Random coins, ordinals and money, some of which nobody knows, and random conflicts over them. */
export class Races {
  /** Those that nothing spends, as far as one knows. */
  readonly coins: FakeTransaction[] = []

  constructor(
    private readonly chain: FakeChain,
    private readonly random: Random,
  ) {}

  /** A new coin, and whether anybody is to know it. */
  coin(): { made: FakeTransaction; isKnown: boolean } {
    const made = this.make([])
    this.coins.push(made)
    return { made, isKnown: this.random.below(3) > 0 }
  }

  /** Two or three that spend one coin, and some of them others that are contested, too. */
  race(): Race | undefined {
    const { random, coins } = this
    if (coins.length < 3) return undefined
    const contested = Array.from({ length: 1 + random.below(3) }, () => this.take())
    const spenders = Array.from({ length: 2 + random.below(2) }, () =>
      this.make(contested.filter((_, index) => index === 0 || random.below(2) === 0)),
    )
    return { spenders, along: spenders.map(() => contested.filter(() => random.below(2) === 0)) }
  }

  /** Takes a coin out of those that may be spent. */
  take(): FakeTransaction {
    const [taken] = this.coins.splice(this.random.below(this.coins.length), 1)
    if (taken === undefined) throw new Error('there is no coin')
    return taken
  }

  private make(spent: FakeTransaction[]): FakeTransaction {
    const seed = this.random.below(1e9)
    const body = utf8(String(seed))
    const lockingScript =
      this.random.below(2) === 0 ? p2pkh(seed) : inscriptionScript({ contentType: 'text/plain', body })
    const inputs = spent.map((transaction) => ({ transaction, vout: 0 }))
    return this.chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
  }
}

/**
 * Submits random conflicts to gateways that write at once, with blocks, proofs and sightings between them. Of those that spend one
 * coin, exactly one is to count.
 */
export async function raceFor(
  rounds: number,
  { gateways, random }: { gateways: Gateways; random: Random },
): Promise<void> {
  const races = new Races(gateways.chain, random)
  const { coins } = races
  const any = (): Gateway => gateways.all[random.below(gateways.all.length)] as Gateway
  for (let round = 0; round < rounds; round++) {
    const happening: Promise<unknown>[] = []
    for (let count = random.below(3); count >= 0; count--) {
      const { made, isKnown } = races.coin()
      if (isKnown) happening.push(submit(any(), [made]))
    }
    if (random.below(3) === 0) await Promise.all(happening.splice(0))
    const answered: { spenders: FakeTransaction[]; answers: Promise<boolean>[] }[] = []
    for (let count = random.below(3); count >= 0; count--) {
      const race = races.race()
      if (race === undefined) break
      const { spenders, along } = race
      const answers = spenders.map((spender, index) => submit(any(), [spender, ...(along[index] ?? [])]))
      answered.push({ spenders, answers })
      happening.push(...answers)
    }
    if (random.below(4) === 0) {
      const subject = { kind: 'content', value: 'ab'.repeat(32), reason: `${round}`, since: round } as const
      happening.push(
        any().writer.change('block', subject),
        any().writer.change('block', { ...subject, reason: 'b' }),
      )
    }
    await Promise.all(happening)
    for (const { spenders, answers } of answered) {
      const counted = await Promise.all(answers)
      expect(counted.filter(Boolean)).toHaveLength(1)
      coins.push(spenders[counted.indexOf(true)] as FakeTransaction)
    }
    if (random.below(3) === 0) {
      const proven = coins[random.below(coins.length)] as FakeTransaction
      await any().writer.record([recordOf(proven, 100 + round)])
    }
    if (random.below(3) === 0) {
      const status = random.below(3) === 0 ? 'rejected' : 'seen'
      await any().writer.change('sightings', [{ txid: races.take().txid, status }])
    }
  }
}
