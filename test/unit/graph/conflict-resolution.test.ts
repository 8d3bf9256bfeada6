import fc from 'fast-check'
import {
  compareRanks,
  decide,
  type RankedView,
  type TransactionStatus,
  updateRanks,
  winnerOver,
} from '../../../backend/src/graph/conflict-resolution.js'

/** Transactions by their inputs, each `<txid>:<vout>`, as a store that holds nothing else would know them. */
class Known implements RankedView {
  readonly all = new Map<string, TransactionStatus>()
  private readonly inputs = new Map<string, string[]>()
  private readonly heights = new Map<string, number>()

  add(txid: string, inputs: string[]): void {
    this.inputs.set(txid, inputs)
    this.all.set(txid, { txid, mined: undefined, insertionOrder: this.all.size, isInactive: false })
  }

  prove(txid: string, height: number | undefined): void {
    if (height === undefined) this.heights.delete(txid)
    else this.heights.set(txid, height)
  }

  async statuses(txids: string[]): Promise<TransactionStatus[]> {
    return txids.flatMap((txid) => {
      const status = this.all.get(txid)
      return status === undefined ? [] : [{ ...status }]
    })
  }

  async parents(txid: string): Promise<string[]> {
    return (this.inputs.get(txid) ?? []).map((input) => input.split(':')[0] ?? '')
  }

  async children(txid: string): Promise<string[]> {
    return this.spenders((input) => input.startsWith(`${txid}:`))
  }

  async conflicts(txid: string): Promise<string[]> {
    const own = this.inputs.get(txid) ?? []
    return this.spenders((input) => own.includes(input)).filter((each) => each !== txid)
  }

  async outputs(): Promise<number> {
    return 1
  }

  async heightOf(txid: string): Promise<number | undefined> {
    return this.heights.get(txid)
  }

  async setRank({ txid, mined, insertionOrder }: TransactionStatus): Promise<void> {
    Object.assign(this.all.get(txid) ?? {}, { mined, insertionOrder })
  }

  /** Decides what the change of some transactions comes to. */
  async follow(...txids: string[]): Promise<void> {
    const ranked = await updateRanks(txids, this)
    const { deactivated, restored } = await decide({ txids, ranked, view: this })
    for (const each of deactivated) Object.assign(this.all.get(each) ?? {}, { isInactive: true })
    for (const each of restored) Object.assign(this.all.get(each) ?? {}, { isInactive: false })
  }

  get inactive(): string[] {
    return [...this.all.values()].flatMap(({ txid, isInactive }) => (isInactive ? [txid] : [])).sort()
  }

  /** The same from scratch: the transaction with the best rank takes what it spends, if nothing took it and its parents count. */
  async expected(): Promise<string[]> {
    const taken = new Map<string, string>()
    const counting = new Set<string>()
    for (const { txid } of [...this.all.values()].sort(compareRanks)) {
      const inputs = this.inputs.get(txid) ?? []
      const parents = (await this.parents(txid)).filter((parent) => this.all.has(parent))
      if (inputs.some((input) => taken.has(input)) || !parents.every((parent) => counting.has(parent)))
        continue
      counting.add(txid)
      for (const input of inputs) taken.set(input, txid)
    }
    return [...this.all.keys()].filter((txid) => !counting.has(txid)).sort()
  }

  private spenders(spends: (input: string) => boolean): string[] {
    return [...this.inputs].flatMap(([txid, inputs]) => (inputs.some(spends) ? [txid] : []))
  }
}

const COUNT = 14

/** Each transaction spends outputs of earlier ones or of nobody known; they come in any order, and proofs come and go. */
const story = fc.record({
  inputs: fc.array(
    fc.array(fc.record({ from: fc.nat(COUNT), vout: fc.nat(1) }), { minLength: 1, maxLength: 3 }),
    { minLength: 2, maxLength: COUNT },
  ),
  names: fc.shuffledSubarray(
    Array.from({ length: COUNT }, (_, at) => String.fromCharCode(97 + at)),
    {
      minLength: COUNT,
    },
  ),
  order: fc.array(fc.nat(), { minLength: COUNT, maxLength: COUNT }),
  proofs: fc.array(fc.record({ of: fc.nat(COUNT), height: fc.option(fc.nat(9), { nil: undefined }) }), {
    maxLength: 12,
  }),
})

test('at every moment those count that would by rank alone, whatever came when', async () => {
  await fc.assert(
    fc.asyncProperty(story, async ({ inputs, names, order, proofs }) => {
      const known = new Known()
      const nameOf = (at: number): string => names[at] ?? ''
      const transactions = inputs.map((spent, at) => ({
        txid: nameOf(at),
        // Of one before it, or of a coin from outside.
        inputs: spent.map(({ from, vout }) =>
          from < at ? `${nameOf(from)}:${vout}` : `outside ${from}:${vout}`,
        ),
        place: order[at] ?? 0,
      }))
      for (const { txid, inputs: spent } of transactions.toSorted((a, b) => a.place - b.place)) {
        known.add(txid, [...new Set(spent)])
        await known.follow(txid)
        expect(known.inactive).toEqual(await known.expected())
      }
      for (const { of, height } of proofs) {
        const txid = nameOf(of % transactions.length)
        known.prove(txid, height)
        await known.follow(txid)
        expect(known.inactive).toEqual(await known.expected())
      }
      for (const txid of known.all.keys()) {
        const winner = await winnerOver(txid, known)
        expect(winner === undefined).toBe(!known.inactive.includes(txid))
        if (winner !== undefined) expect(known.inactive).not.toContain(winner)
      }
    }),
    { numRuns: 200 },
  )
})

test('what is built on a mined one is of a worse rank than that, though it came first', async () => {
  const known = new Known()
  known.add('child', ['parent:0'])
  known.add('parent', ['coin:0'])
  known.prove('child', 7)
  await known.follow('child')
  await known.follow('parent')
  const [child, parent] = await known.statuses(['child', 'parent'])
  expect(parent).toMatchObject({ mined: 7 })
  expect(parent && child && compareRanks(parent, child)).toBeLessThan(0)
})

test('one that spends what its own ancestor spends never counts', async () => {
  for (const hostile of ['a', 'z']) {
    const known = new Known()
    known.add(hostile, ['coin:0', 'm:1'])
    known.add('m', ['coin:0'])
    await known.follow(hostile, 'm')
    expect(known.inactive).toEqual([hostile])
    expect(await winnerOver(hostile, known)).toBe('m')
  }
})

test('of a coin with hundreds of conflicting spends, one more has few of them looked at', async () => {
  class Counting extends Known {
    asked = 0

    override async conflicts(txid: string): Promise<string[]> {
      this.asked++
      return await super.conflicts(txid)
    }
  }
  const known = new Counting()
  const spend = async (txid: string, height: number): Promise<number> => {
    known.add(txid, ['coin:0'])
    known.prove(txid, height)
    known.asked = 0
    await known.follow(txid)
    return known.asked
  }
  for (let at = 0; at < 300; at++) await spend(`later ${at}`, 1000 + at)
  expect(known.inactive).toHaveLength(299)
  expect(await spend('last', 5000)).toBeLessThan(10)
  // One that beats them all: what counted until now is deactivated, and nothing else is read.
  expect(await spend('first', 1)).toBeLessThan(10)
  expect(known.inactive).toHaveLength(301)
})
