import fc from 'fast-check'
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

// Submissions that come at the same time share commits. What becomes of each, and of the store, is what comes of sending them
// one after another, in the order in which they were written: with conflicts among them, repeats, invalid ones, and parents and
// children in different ones.

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

async function start({ chain }: World): Promise<TestServer> {
  const env = { ...treeOf(chain.deployment), SUBMISSIONS_PER_MINUTE: '0' }
  const server = await servers.start(env)
  await server.submit(beefOf(chain.genesis), BOTH_TOPICS)
  return server
}

/** Keeps what a server wants to store until so many submissions are verified, so that they wait for the writer together. */
function holdUntilVerified(server: TestServer, count: number): { txid: string; status: string }[] {
  const { graph } = server.node
  const record = graph.record.bind(graph)
  const written: { txid: string; status: string }[] = []
  let left = count
  let open = (): void => {}
  const verified = new Promise<void>((resolve) => {
    open = resolve
  })
  graph.record = async (records, options) => {
    if (--left === 0) open()
    await verified
    const [txid = ''] = options?.subjects ?? []
    try {
      const admitted = await record(records, options)
      written.push({ txid, status: 'stored' })
      return admitted
    } catch (error) {
      written.push({ txid, status: String(error) })
      throw error
    }
  }
  return written
}

test('submissions that come at once come to what they come to one after another', async () => {
  await expectRuns({
    plan,
    runs: 6,
    least: ['200', '400', '409'],
    async run({ steps, order }) {
      const world = new World()
      for (const each of steps) world.make(each)
      const sent = world.submitted
        .map((each, index) => ({ ...each, place: order[index] ?? 0 }))
        .sort((one, other) => one.place - other.place)
      const whole = sent.filter(({ isCut }) => !isCut)
      const server = await start(world)
      const written = holdUntilVerified(server, whole.length)
      const answers = await Promise.all(sent.map(({ beef }) => server.submit(beef, BOTH_TOPICS)))
      const together = sent.map(({ txid, isCut }, at) => ({ txid, isCut, status: answers[at]?.status }))
      expect(written).toHaveLength(whole.length)
      const rows = server.rows()
      await server.stop()

      const quiet = await start(world)
      const alone: string[] = []
      for (const { txid } of written) {
        const beef = whole.find((each) => each.txid === txid)?.beef ?? new Uint8Array()
        alone.push(`${txid} ${(await quiet.submit(beef, BOTH_TOPICS)).status}`)
      }
      const ofWhole = together.filter(({ isCut }) => !isCut).map(({ txid, status }) => `${txid} ${status}`)
      const ofCut = together.filter(({ isCut }) => isCut).map(({ status }) => status)
      expect(ofCut).toEqual(ofCut.map(() => 400))
      expect({ statuses: ofWhole.sort(), rows }).toEqual({ statuses: alone.sort(), rows: quiet.rows() })
      await quiet.stop()
      const happened: Record<string, number> = {}
      for (const { status = 0 } of together) happened[status] = (happened[status] ?? 0) + 1
      return happened
    },
  })
}, 3_600_000)
