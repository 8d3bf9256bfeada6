import fc from 'fast-check'
import {
  compareRanks,
  decide,
  isRejected,
  type RankedView,
  reasonAgainst,
  type Sighting,
  type TransactionStatus,
  updateRanks,
} from '../../../backend/src/graph/conflict-resolution.js'

/** Transactions by their inputs, each `<txid>:<vout>`, as a store that holds nothing else would know them. */
class Known implements RankedView {
  readonly all = new Map<string, TransactionStatus>()
  private readonly inputs = new Map<string, string[]>()
  private readonly heights = new Map<string, number>()
  private readonly sightings = new Map<string, Sighting>()

  add(txid: string, inputs: string[]): void {
    this.inputs.set(txid, inputs)
    const rank = { mined: undefined, seen: false, rejected: false, insertionOrder: this.all.size }
    this.all.set(txid, { txid, ...rank, isInactive: false })
  }

  prove(txid: string, height: number | undefined): void {
    if (height === undefined) this.heights.delete(txid)
    else this.heights.set(txid, height)
  }

  sight(txid: string, status: Sighting): void {
    this.sightings.set(txid, status)
  }

  async statuses(txids: string[]): Promise<TransactionStatus[]> {
    return txids.flatMap((txid) => {
      const status = this.all.get(txid)
      return status === undefined ? [] : [{ ...status }]
    })
  }

  inputsOf(txid: string): string[] {
    return this.inputs.get(txid) ?? []
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

  async sightingOf(txid: string): Promise<Sighting | undefined> {
    return this.sightings.get(txid)
  }

  async setRank({ txid, isInactive: _, ...rank }: TransactionStatus): Promise<void> {
    Object.assign(this.all.get(txid) ?? {}, rank)
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
    for (const status of [...this.all.values()].sort(compareRanks)) {
      const { txid } = status
      if (isRejected(status)) continue
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

const saying = fc.oneof(
  fc.record({ of: fc.nat(COUNT), height: fc.option(fc.nat(9), { nil: undefined }) }),
  fc.record({ of: fc.nat(COUNT), status: fc.constantFrom('seen' as const, 'rejected' as const) }),
)
const sayings = (maxLength: number) => fc.array(saying, { maxLength })

/**
 * Each transaction spends outputs of earlier ones or of nobody known; they come in any order, proofs come and go, and the network
 * says one thing and then another, also of those that are still to come.
 */
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
  early: sayings(3),
  sayings: sayings(12),
})

test('at every moment those count that would by rank alone, whatever came when', async () => {
  await fc.assert(
    fc.asyncProperty(story, async ({ inputs, names, order, early, sayings }) => {
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
      const say = (each: (typeof sayings)[number]): string => {
        const txid = nameOf(each.of % transactions.length)
        if ('status' in each) known.sight(txid, each.status)
        else known.prove(txid, each.height)
        return txid
      }
      for (const each of early) say(each)
      for (const { txid, inputs: spent } of transactions.toSorted((a, b) => a.place - b.place)) {
        known.add(txid, [...new Set(spent)])
        await known.follow(txid)
        expect(known.inactive).toEqual(await known.expected())
      }
      for (const each of sayings) {
        await known.follow(say(each))
        expect(known.inactive).toEqual(await known.expected())
      }
      for (const txid of known.all.keys()) {
        const reason = await reasonAgainst(txid, known)
        expect(reason === undefined).toBe(!known.inactive.includes(txid))
        if (reason !== undefined) expect(reason.isInactive).toBe(isRejected(reason))
      }
    }),
    { numRuns: 300 },
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
    expect(await reasonAgainst(hostile, known)).toMatchObject({ txid: 'm' })
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

test('the tiers are proven, seen, unseen, and each passes to what a transaction is built on', async () => {
  const known = new Known()
  const counting = (): string[] => [...known.all.keys()].filter((txid) => !known.inactive.includes(txid))
  known.add('squat', ['node:0'])
  known.add('honest', ['node:0'])
  known.add('next', ['honest:0'])
  await known.follow('squat', 'honest', 'next')
  expect(counting()).toEqual(['squat'])
  known.sight('next', 'seen')
  await known.follow('next')
  expect(counting()).toEqual(['honest', 'next'])
  // The network has what is built on it, so it has it, too.
  known.sight('honest', 'rejected')
  await known.follow('honest')
  expect(counting()).toEqual(['honest', 'next'])
  known.sight('next', 'rejected')
  await known.follow('next')
  expect(counting()).toEqual(['squat'])
  expect(await reasonAgainst('next', known)).toMatchObject({ txid: 'next', rejected: true })
  known.prove('next', 7)
  await known.follow('next')
  expect(counting()).toEqual(['honest', 'next'])
  known.sight('squat', 'seen')
  await known.follow('squat')
  expect(counting()).toEqual(['honest', 'next'])
})

test('whatever strangers make of unseen transactions, what is proven or seen stays as it is', async () => {
  await fc.assert(
    fc.asyncProperty(story, fc.array(fc.nat(COUNT), { minLength: 1 }), async (told, squats) => {
      const known = new Known()
      const nameOf = (at: number): string => told.names[at] ?? ''
      const count = told.inputs.length
      for (const [at, spent] of told.inputs.entries())
        known.add(nameOf(at), [
          ...new Set(
            spent.map(({ from, vout }) => `${from < at ? nameOf(from) : `outside ${from}`}:${vout}`),
          ),
        ])
      for (const each of told.sayings) {
        const txid = nameOf(each.of % count)
        if ('status' in each) known.sight(txid, each.status)
        else known.prove(txid, each.height)
      }
      await known.follow(...known.all.keys())
      const tier = (): string[] => {
        const inactive = new Set(known.inactive)
        return [...known.all.values()].flatMap(({ txid, seen }) =>
          seen && !inactive.has(txid) ? [txid] : [],
        )
      }
      const before = tier()
      for (const [index, at] of squats.entries()) {
        const [coin = 'none'] = known.inputsOf(nameOf(at % count))
        known.add(`squat ${index}`, [coin])
        await known.follow(`squat ${index}`)
      }
      expect(tier()).toEqual(before)
    }),
  )
})
