import fc from 'fast-check'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'
import { BOTH_TOPICS } from '../happenings.js'
import { expectRuns } from '../trial.js'

// Submissions that come at the same time share writes. What becomes of each, and of the store, is what comes of sending them
// one after another, in the order in which they were written: with conflicts among them, repeats, invalid ones, and parents and
// children in different ones. Of those that share a write, one that brings the proof of another goes before it.

const servers = useServers()

/** What is made next; numbers choose among what there is. */
const step = fc.record({
  kind: fc.constantFrom(
    'mint',
    'mint',
    'rival mint',
    'inscribe',
    'move',
    'move',
    'rival move',
    'repeat',
    'invalid',
  ),
  at: fc.nat(1000),
  proven: fc.boolean(),
  /** Whether what a proven one spends comes along. */
  sources: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never

const plan = fc.record({
  steps: fc.array(step, { minLength: 4, maxLength: 24, size: 'max' }),
  /** Decides in which order they are sent. */
  order: fc.array(fc.nat(1000), { minLength: 24, maxLength: 24 }),
})

interface Submitted {
  txid: string
  beef: Uint8Array
  /** Whether its end is missing. */
  isCut: boolean
}

/** Transactions over one tree, and the BEEFs in which they are sent. */
class World {
  readonly chain = new FakeChain()
  readonly submitted: Submitted[] = []
  private readonly parents = new Map<FakeTransaction, FakeTransaction[]>()
  private readonly names: string[] = []
  private readonly coins: { transaction: FakeTransaction; vout: number }[] = []
  private readonly ordinals: FakeTransaction[] = []
  private readonly moves: { from: FakeTransaction }[] = []
  private count = 0

  make({ kind, at, proven, sources }: Step): void {
    const number = ++this.count
    const some = <Item>(items: readonly Item[]): Item | undefined => items[at % items.length]
    const send = (transaction: FakeTransaction): void => {
      const { txid } = transaction
      this.submitted.push({ txid, beef: this.beefOf(transaction, { proven, sources }), isCut: false })
    }
    if (kind === 'mint') {
      const name = `${some(['', ...this.names]) ?? ''}${'abc'[number % 3]}`
      if (this.names.includes(name)) return
      const coin = this.coin()
      const mint = this.chain.mint(name, { funding: [coin] })
      this.parents.set(mint, [...this.spentBy(mint), coin.transaction])
      this.names.push(name)
      send(mint)
    } else if (kind === 'rival mint') {
      const coin = this.coin()
      const domain = some(['', ...this.names]) ?? ''
      const from = this.chain.node(domain)
      const mint = this.chain.mint(`${domain}x`, { from, ownerLock: p2pkh(number), funding: [coin] })
      this.parents.set(mint, [...this.spentBy(mint), coin.transaction])
      send(mint)
    } else if (kind === 'inscribe') {
      const coin = this.coin()
      const lockingScript = inscriptionScript({
        lock: OPEN_LOCK,
        contentType: 'text/plain',
        body: utf8(`${number}`),
      })
      const inscribed = this.chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript }] })
      this.parents.set(inscribed, [coin.transaction])
      this.ordinals.push(inscribed)
      send(inscribed)
    } else if (kind === 'move' || kind === 'rival move') {
      const from = kind === 'move' ? some(this.ordinals) : some(this.moves)?.from
      if (from === undefined) return
      const outputs = [
        { satoshis: 1, lockingScript: OPEN_LOCK },
        { satoshis: 0, lockingScript: p2pkh(number) },
      ]
      const moved = this.chain.spend({ inputs: [{ transaction: from, vout: 0 }], outputs })
      this.parents.set(moved, [from])
      if (kind === 'move') {
        this.ordinals[this.ordinals.indexOf(from)] = moved
        this.moves.push({ from })
      }
      send(moved)
    } else {
      const again = some(this.submitted.filter(({ isCut }) => !isCut))
      if (again === undefined) return
      const cut = { ...again, beef: again.beef.slice(0, -1), isCut: true }
      this.submitted.push(kind === 'repeat' ? again : cut)
    }
  }

  /** A coin of a purse that pays for several. */
  private coin(): { transaction: FakeTransaction; vout: number } {
    if (this.coins.length === 0) {
      const outputs = Array.from({ length: 4 }, () => ({ satoshis: 5000, lockingScript: OPEN_LOCK }))
      const transaction = this.chain.spend({ inputs: [], outputs })
      for (const vout of outputs.keys()) this.coins.push({ transaction, vout })
    }
    return this.coins.shift() as { transaction: FakeTransaction; vout: number }
  }

  /** The transactions made here whose outputs one spends. */
  private spentBy({ transaction }: FakeTransaction): FakeTransaction[] {
    const spent = new Set(transaction.inputs.map(({ txid }) => txid))
    return [this.chain.genesis, ...this.parents.keys()].filter(({ txid }) => spent.has(txid))
  }

  private beefOf(
    transaction: FakeTransaction,
    { proven, sources }: Pick<Step, 'proven' | 'sources'>,
  ): Uint8Array {
    const parents = [...new Set(this.parents.get(transaction))]
    return beefOf(transaction, { proven, with: proven && !sources ? [] : parents })
  }
}

/**
 * The rows of a store but for times, for how often a branch was reorganised, and for what records of inactive transactions say:
 * that is brought up to date when they become active.
 */
function lasting(server: TestServer): Record<string, string[]> {
  const { graph_admissions = [], graph_silent_facts = [], graph_settings = [], ...rows } = server.rows()
  const keysOf = (all: string[]): string[] =>
    all.map((row) => JSON.stringify((JSON.parse(row) as unknown[]).slice(0, 3))).sort()
  return {
    ...rows,
    graph_admissions: keysOf(graph_admissions),
    graph_silent_facts: keysOf(graph_silent_facts),
    graph_settings: graph_settings.filter((row) => !row.includes('"turns"')),
  }
}

/** Submissions that shared a write, in an order in which each comes after those that bring its proof and that it lacks. */
function proversFirst(group: Submitted[]): Submitted[] {
  const waiting = [...group]
  const ordered: Submitted[] = []
  while (waiting.length > 0) {
    const next = waiting.findIndex(
      (each) => !waiting.some((other) => !proves(each, each.txid) && proves(other, each.txid)),
    )
    ordered.push(...waiting.splice(next, 1))
  }
  return ordered
}

function proves({ beef }: Submitted, txid: string): boolean {
  return readBeef(beef).proof(txid) !== undefined
}

async function start({ chain }: World): Promise<TestServer> {
  const server = await servers.start({ ...treeOf(chain.deployment), SUBMISSIONS_PER_MINUTE: '0' })
  await server.submit(beefOf(chain.genesis), BOTH_TOPICS)
  return server
}

/** Starts work while something else is written, which ends when so many units of it wait to be written. */
async function whileLocked<Result>(
  server: TestServer,
  { waiting, work }: { waiting: number; work: () => Promise<Result> },
): Promise<Result> {
  if (waiting === 0) return await work()
  const { writeLock } = server.node.overlay.engine
  const runIfNeeded = writeLock.runIfNeeded.bind(writeLock)
  let result: Promise<Result> | undefined
  await writeLock.run(async () => {
    const allWait = new Promise<void>((resolve) => {
      let left = waiting
      writeLock.runIfNeeded = (...all) => {
        if (--left === 0) resolve()
        return runIfNeeded(...all)
      }
    })
    result = work()
    await allWait
  })
  return await (result as Promise<Result>)
}

test('submissions that come at once come to what they come to one after another', async () => {
  await expectRuns({
    plan,
    runs: 6,
    least: ['200', '400', '409', 'shared writes'],
    async run({ steps, order }) {
      const world = new World()
      for (const each of steps) world.make(each)
      const sent = world.submitted
        .map((each, index) => ({ ...each, place: order[index] ?? 0 }))
        .sort((one, other) => one.place - other.place)
      const happened: Record<string, number> = {}
      const note = (what: string, times = 1): void => {
        happened[what] = (happened[what] ?? 0) + times
      }
      const server = await start(world)
      const written: string[][] = []
      const { store } = server.node.graph
      const record = store.record.bind(store)
      store.record = async (records, options) => {
        const subjects = options?.subjects ?? []
        try {
          const admitted = await record(records, options)
          written.push([...subjects])
          return admitted
        } catch (error) {
          // If several fail together, each is written alone.
          if (subjects.length === 1) written.push([...subjects])
          throw error
        }
      }
      const answers = await whileLocked(server, {
        waiting: sent.filter(({ isCut }) => !isCut).length,
        work: () => Promise.all(sent.map(({ beef }) => server.submit(beef, BOTH_TOPICS))),
      })
      await server.node.backlog?.done()
      const statuses = answers.map(({ status }) => status)
      for (const status of statuses) note(String(status))
      note('shared writes', written.filter(({ length }) => length > 1).length)
      const stored = lasting(server)
      await server.stop()

      const quiet = await start(world)
      const alone: string[] = []
      const submittedOf = (txid: string): Submitted =>
        sent.find((each) => each.txid === txid && !each.isCut) as Submitted
      for (const { txid, beef } of written.flatMap((group) => proversFirst(group.map(submittedOf)))) {
        alone.push(`${txid} ${(await quiet.submit(beef, BOTH_TOPICS)).status}`)
      }
      await quiet.node.backlog?.done()
      // One that is sent twice may be written once.
      const distinct = (all: string[]): string[] => [...new Set(all)].sort()
      const together = sent.flatMap(({ txid, isCut }, at) => (isCut ? [] : [`${txid} ${statuses[at]}`]))
      expect(statuses.filter((_, at) => sent[at]?.isCut)).toEqual(
        sent.flatMap(({ isCut }) => (isCut ? [400] : [])),
      )
      expect({ statuses: distinct(together), stored }).toEqual({
        statuses: distinct(alone),
        stored: lasting(quiet),
      })
      await quiet.stop()
      return happened
    },
  })
}, 3_600_000)
