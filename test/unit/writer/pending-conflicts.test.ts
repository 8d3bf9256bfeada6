import {
  compareRanks,
  isRejected,
  type TransactionStatus,
} from '../../../backend/src/graph/conflict-resolution.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { rounds } from '../../support/nightly.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { Random } from '../../support/random.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

// `RUNS=300 SEED=7 npm test -- test/unit/writer/pending-conflicts.test.ts` does so many other histories, from that seed on.
const { SEED } = process.env

/** These and the first ones found faults, or ones that were put in. */
const FOUND = [17, 48, 74, 522, 1035, 2066, 3099, 21009, 30184]
const RUNS = rounds(6, 300)
const SEEDS = [
  ...(SEED === undefined ? FOUND : []),
  ...Array.from({ length: RUNS }, (_, at) => Number(SEED ?? 1) + at),
]

/** What one payment spends: outputs of earlier ones, by their numbers. */
interface Payment {
  coins: (readonly [payment: number, vout: number])[]
  /** An inscription is a fact at once, and so is what it is paid with. */
  isInscription: boolean
}

/** What happens to the payment of a number. */
interface Step {
  kind:
    | 'submitted'
    | 'submitted with ancestors'
    | 'submitted with proven parents'
    | 'proven'
    | 'disproved'
    | 'seen'
    | 'rejected'
  payment: number
  /** Of the block that proves it, or its parents. */
  height?: number
}

interface History {
  /** How many may be pending and count, and how many may wait. */
  room: number
  payments: Payment[]
  steps: Step[]
}

const STEPS = 40
const OUTPUTS = 2
/** The first payment has coins for the others. */
const PURSE = 8

function historyOf(seed: number): History {
  const random = new Random(seed)
  const pick = <Value>(values: readonly Value[]): Value => values[random.below(values.length)] as Value
  const isOneOf = (share: number): boolean => random.next() < share
  const [inscribed, late, room] = [pick([0, 0.2]), pick([0, 0.2]), pick([100, 100, 8])]
  const payments: Payment[] = [{ coins: [], isInscription: false }]
  const coins = Array.from({ length: PURSE }, (_, vout): Payment['coins'][number] => [0, vout])
  const pay = (): number => {
    const spent = Array.from({ length: 1 + random.below(3) }, () =>
      pick(isOneOf(0.5) ? coins : coins.slice(-PURSE)),
    )
    for (let vout = 0; vout < OUTPUTS; vout++) coins.push([payments.length, vout])
    return payments.push({ coins: [...new Set(spent)], isInscription: isOneOf(inscribed) }) - 1
  }
  const any = (): number => 1 + random.below(payments.length - 1)
  const proofs: { payment: number; height: number }[] = []
  const proven = (payment: number, height = 100 + random.below(10)) => {
    proofs.push({ payment, height })
    return { payment, height }
  }
  const steps: Step[] = []
  while (steps.length < STEPS) {
    const what = random.next()
    if (what < 0.6 || payments.length === 1) {
      const payment = payments.length > 1 && isOneOf(late / 2) ? any() : pay()
      const how = random.next()
      if (how < late) {
        // It comes later, or with what is built on it, or never.
      } else if (how < 1.5 * late) {
        const { height } = proven(payment)
        for (const [parent] of (payments[payment] as Payment).coins) proven(parent, height)
        steps.push({ kind: 'submitted with proven parents', payment, height })
      } else {
        const kind = how < 2.5 * late ? 'submitted with ancestors' : 'submitted'
        steps.push({ kind, ...(isOneOf(0.15) ? proven(payment) : { payment }) })
      }
    } else if (what < 0.75) steps.push({ kind: 'proven', ...proven(any()) })
    else if (what < 0.9) steps.push({ kind: pick(['seen', 'rejected']), payment: any() })
    else if (proofs.length > 0) steps.push({ kind: 'disproved', ...pick(proofs) })
  }
  return { room, payments, steps }
}

/** What is known of a payment that is stored. */
interface Stored {
  place: number
  isCounting: boolean
}

/** Pending ones come after all facts, and what is new after those. */
const FIRST_PENDING = 1e6
const FIRST_NEW = 2e6
/** Room between two places for parents that came after their children. */
const GAP = 2 ** 20

/** A history at a writer, beside what should be known. */
class Run {
  private readonly store: OpenedWriter
  private readonly transactions: FakeTransaction[]
  private readonly heights = new Map<number, Set<number>>()
  private readonly said = new Map<number, string>()

  constructor(private readonly history: History) {
    const limits = { maxTransactions: history.room, maxBytes: 1024 * 1024 }
    this.store = new OpenedWriter({ pending: limits, waiting: limits })
    const { chain } = this.store
    this.transactions = []
    for (const [at, { coins, isInscription }] of history.payments.entries()) {
      const lockingScript = isInscription
        ? inscriptionScript({ contentType: 'text/plain', body: utf8(`text ${at}`) })
        : p2pkh(at)
      const money = { satoshis: 1000 + at, lockingScript: p2pkh(at) }
      const first = { ...money, lockingScript, ...(isInscription && { satoshis: 1 }) }
      const inputs = coins.map(([payment, vout]) => ({
        transaction: this.transactions[payment] as FakeTransaction,
        vout,
      }))
      const others = Array.from({ length: (at === 0 ? PURSE : OUTPUTS) - 1 }, () => money)
      this.transactions.push(chain.spend({ inputs, outputs: [first, ...others] }))
    }
  }

  /** @returns The first thing that is wrong, if anything is. */
  async violation(): Promise<string | undefined> {
    try {
      await this.store.know(this.transactionOf(0), 90)
      this.heights.set(0, new Set([90]))
      for (const [at, step] of this.history.steps.entries()) {
        const found = (await this.take(step)) ?? this.wrong()
        if (found !== undefined) return `after step ${at}, ${found}`
      }
      return undefined
    } catch (error) {
      return String(error)
    } finally {
      await this.store.close()
    }
  }

  private transactionOf(payment: number): FakeTransaction {
    return this.transactions[payment] as FakeTransaction
  }

  private parentsOf(payment: number): number[] {
    return (this.history.payments[payment] as Payment).coins.map(([parent]) => parent)
  }

  private async take({ kind, payment, height }: Step): Promise<string | undefined> {
    const { writer } = this.store
    const record = recordOf(this.transactionOf(payment), height)
    switch (kind) {
      case 'submitted':
        return await this.submit(payment, [payment], { proven: [payment], height })
      case 'submitted with ancestors':
        return await this.submit(payment, this.unknownBehind(payment), { proven: [payment], height })
      case 'submitted with proven parents': {
        const parents = this.parentsOf(payment)
        return await this.submit(payment, [payment, ...parents], { proven: parents, height })
      }
      case 'proven':
        if (!this.stored().has(payment)) break
        await writer.record([record])
        this.prove([payment], height)
        break
      case 'disproved':
        if (record.proof === undefined || !this.heights.get(payment)?.delete(record.proof.height)) break
        await writer.change('disprove', record.proof)
        break
      default:
        await writer.change('sightings', [{ txid: record.txid, status: kind }])
        this.said.set(payment, kind)
    }
    return undefined
  }

  /** A payment with all that it is built on, and that is not known. */
  private unknownBehind(payment: number): number[] {
    const stored = this.stored()
    const line = new Set([payment])
    for (const each of line)
      for (const parent of this.parentsOf(each)) if (!stored.has(parent)) line.add(parent)
    return [...line]
  }

  private async submit(
    payment: number,
    along: readonly number[],
    { proven, height }: { proven: readonly number[]; height: number | undefined },
  ): Promise<string | undefined> {
    // Their numbers are an order in which parents come first.
    const submitted = [...new Set(along)].sort((one, other) => one - other)
    const stored = this.stored()
    for (const [at, each] of submitted.entries())
      if (!stored.has(each)) stored.set(each, { place: FIRST_NEW + at, isCounting: false })
    const provenBefore = new Map(proven.map((each) => [each, new Set(this.heights.get(each))]))
    this.prove(proven, height)
    const expected = this.expected(stored).get(payment)
    const { lost } = await this.store.writer.record(
      submitted.map((each) => recordOf(this.transactionOf(each), proven.includes(each) ? height : undefined)),
      { subjects: [this.transactionOf(payment).txid], keepLost: { client: 'aa' } },
    )
    // Of what is refused nothing is stored, and neither are its proofs.
    const isRefused = lost.length > 0 && proven.some((each) => !this.hasProof(each, height))
    if (isRefused) for (const [each, heights] of provenBefore) this.heights.set(each, heights)
    const isLost = expected?.isInactive === true && expected.mined === undefined
    if (lost.length > 0 === isLost) return undefined
    return `the answer to payment ${payment} is that it ${isLost ? 'counts' : 'lost'}`
  }

  private prove(payments: readonly number[], height: number | undefined): void {
    for (const each of height === undefined ? [] : payments)
      this.heights.set(each, (this.heights.get(each) ?? new Set()).add(height as number))
  }

  private hasProof(payment: number, height = 0): boolean {
    const values = [this.transactionOf(payment).txid.toUpperCase(), height] as const
    const { store } = this
    return (
      store.log('select 1 from pending_proof where hex(txid) = ? and height = ?', ...values).length > 0 ||
      store.index(
        'select 1 from proof join tx on tx.id = proof.tid where hex(txid) = ? and height = ? and ok = 1',
        ...values,
      ).length > 0
    )
  }

  /** What the writer has, by the numbers of payments. */
  private stored(): Map<number, Stored> {
    const numbers = new Map(this.transactions.map(({ txid }, at) => [txid, at]))
    const numberOf = (txid: Buffer): number => numbers.get(txid.toString('hex')) as number
    const facts = this.store.index('select txid, seq, active from tx where seq is not null')
    const pending = this.store.log('select txid, arrived, waiting from pending')
    const found = new Map<number, Stored>()
    for (const { txid, seq, active } of facts)
      found.set(numberOf(txid), { place: seq, isCounting: active === 1 })
    for (const { txid, arrived, waiting } of pending)
      found.set(numberOf(txid), { place: FIRST_PENDING + arrived, isCounting: waiting === 0 })
    // What there was no room for is forgotten with its proofs.
    for (const payment of this.heights.keys()) if (!found.has(payment)) this.heights.delete(payment)
    return found
  }

  /** By the rules: the best rank first, each counts unless something that it depends on is against it. */
  private expected(stored: ReadonlyMap<number, Stored>): Map<number, TransactionStatus> {
    const found = new Map<number, TransactionStatus>()
    for (const [payment, { place }] of stored) {
      const heights = [...(this.heights.get(payment) ?? [])]
      const mined = heights.length > 0 ? Math.min(...heights) : undefined
      const said = this.said.get(payment)
      found.set(payment, {
        ...{ txid: this.transactionOf(payment).txid, mined, seen: mined !== undefined || said === 'seen' },
        ...{ rejected: said === 'rejected', insertionOrder: place * GAP, isInactive: true },
      })
    }
    // Children have higher numbers.
    for (const payment of [...found.keys()].sort((one, other) => other - one)) {
      const own = found.get(payment) as TransactionStatus
      for (const parent of this.parentsOf(payment).flatMap((each) => found.get(each) ?? [])) {
        if (own.mined !== undefined) parent.mined = Math.min(own.mined, parent.mined ?? own.mined)
        parent.seen ||= own.seen
        parent.insertionOrder = Math.min(parent.insertionOrder, own.insertionOrder - 1)
      }
    }
    const spent = new Set<string>()
    for (const [payment, status] of [...found].sort(([, one], [, other]) => compareRanks(one, other))) {
      const coins = (this.history.payments[payment] as Payment).coins.map(String)
      if (isRejected(status) || coins.some((coin) => spent.has(coin))) continue
      if (this.parentsOf(payment).some((parent) => found.get(parent)?.isInactive)) continue
      status.isInactive = false
      for (const coin of coins) spent.add(coin)
    }
    return found
  }

  private wrong(): string | undefined {
    const stored = this.stored()
    const expected = this.expected(stored)
    for (const [payment, { isCounting, place }] of stored)
      if (isCounting === expected.get(payment)?.isInactive)
        return `payment ${payment} ${isCounting ? 'counts' : 'does not count'}, ${place > FIRST_PENDING ? 'pending' : 'a fact'}`
    return undefined
  }
}

/** Leaves out what a history fails without. */
async function smallest(history: History): Promise<History> {
  let left = history
  const isFailing = async (less: History): Promise<boolean> => {
    const fails = (await new Run(less).violation()) !== undefined
    if (fails) left = less
    return fails
  }
  for (let length = -1; length !== left.steps.length; ) {
    length = left.steps.length
    for (let at = length - 1; at >= 0; at--)
      await isFailing({ ...left, steps: left.steps.filter((_, other) => other !== at) })
  }
  for (const number of left.payments.keys())
    for (let at = (left.payments[number] as Payment).coins.length - 1; at >= 0; at--)
      await isFailing({
        ...left,
        payments: left.payments.map((each, other) =>
          other === number ? { ...each, coins: each.coins.filter((_, coin) => coin !== at) } : each,
        ),
      })
  return left
}

function described({ room, payments, steps }: History): string {
  const used = new Set(steps.map(({ payment }) => payment))
  for (const each of used) for (const [parent] of (payments[each] as Payment).coins) used.add(parent)
  return [
    `There is room for ${room}.`,
    ...[...used]
      .sort((one, other) => one - other)
      .map((each) => {
        const { coins, isInscription } = payments[each] as Payment
        return `payment ${each}${isInscription ? ', an inscription,' : ''} spends ${coins.map(([payment, vout]) => `${payment}:${vout}`).join(' ')}`
      }),
    ...steps.map(({ kind, payment, height }, at) => `${at}. payment ${payment} is ${kind} ${height ?? ''}`),
  ].join('\n')
}

test('whatever happens to payments in conflict, those count that the rules say', async () => {
  for (const seed of SEEDS) {
    const history = historyOf(seed)
    if ((await new Run(history).violation()) === undefined) continue
    const least = await smallest(history)
    throw new Error(`SEED=${seed} ${await new Run(least).violation()}\n${described(least)}`)
  }
})
