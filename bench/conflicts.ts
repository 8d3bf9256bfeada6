import { utf8 } from '../backend/src/protocol/bytes.js'
import {
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { OpenedWriter } from '../test/support/writer/opened-writer.js'

let coins = 0
const MONEY: FakeOutput = { satoshis: 1000, lockingScript: p2pkh(1) }
/** How many submissions at the end of a flood are measured. */
const LAST = 20

type Flood = (store: OpenedWriter) => Promise<{
  /** The transactions of the n-th submission, its subject first. */
  submission: (n: number) => FakeTransaction[]
  /** A write that concerns all of them. */
  decide?: (store: OpenedWriter, submitted: FakeTransaction[]) => Promise<unknown>
}>

const FLOODS: Record<string, Flood> = {
  'inscriptions by themselves': async (store) => ({ submission: (n) => [inscription(store, [], n)] }),
  'losers of one coin, and a sighting that another one was rejected': async (store) => {
    const coin = money(store)
    return {
      submission: (n) => [inscription(store, [coin], n)],
      decide: (_, [winner]) => rejected(store, winner),
    }
  },
  'losing mints of one node': async (store) => {
    await store.know(store.chain.genesis, 100)
    const root = store.chain.node('')
    return {
      submission: (n) => [store.chain.mint(nameOf(n), { from: root })],
      decide: (_, [winner]) => rejected(store, winner),
    }
  },
  'a chain of losers, each with another proven coin': async (store) => {
    const coin = money(store)
    await store.submit([inscription(store, [coin], 0)])
    let last = coin
    return {
      async decide(_, [first]) {
        await store.writer.change('sightings', [{ txid: first?.txid ?? '', status: 'seen' }])
      },
      submission: (n) => {
        last = store.chain.spend({
          inputs: [last, money(store)].map(coinOf),
          outputs: [MONEY, { satoshis: n, lockingScript: p2pkh(2) }],
        })
        return [last]
      },
    }
  },
  'a chain of payments': async (store) => {
    let last = money(store)
    return {
      submission: () => {
        last = store.chain.spend({ inputs: [coinOf(last)], outputs: [MONEY] })
        return [last]
      },
    }
  },
  'a chain of inscriptions': async (store) => {
    let last: FakeTransaction | undefined
    return {
      submission: (n) => {
        last = inscription(store, last ? [last] : [], n)
        return [last]
      },
    }
  },
}

function money({ chain }: OpenedWriter): FakeTransaction {
  return chain.spend({ inputs: [], outputs: [MONEY, { satoshis: ++coins, lockingScript: p2pkh(2) }] })
}

function inscription({ chain }: OpenedWriter, coins: FakeTransaction[], n: number): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(`note ${n}`) })
  return chain.spend({ inputs: coins.map(coinOf), outputs: [{ satoshis: 1, lockingScript }] })
}

function coinOf(transaction: FakeTransaction): { transaction: FakeTransaction; vout: number } {
  return { transaction, vout: 0 }
}

function nameOf(n: number): string {
  return [...String(n)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
}

async function rejected(store: OpenedWriter, transaction: FakeTransaction | undefined): Promise<void> {
  await store.writer.change('sightings', [{ txid: transaction?.txid ?? '', status: 'rejected' }])
}

/** How many submissions a flood has. */
const SIZES = [10, 100, 1000]

/**
 * What a submission costs the writer where many others are in its way: CPU of the last ones of floods of 10, 100 and 1,000, and of one
 * write that decides about all of them.
 */
export async function* conflicts(wanted: readonly string[] = []): AsyncGenerator<string> {
  for (const [name, flood] of Object.entries(FLOODS)) {
    if (wanted.length > 0 && !wanted.some((each) => name.includes(each))) continue
    const costs: string[] = []
    for (const size of SIZES) costs.push(`${size}: ${await costOf(flood, size)}`)
    yield `${name}, ms of CPU of a submission: ${costs.join(', ')}`
  }
}

async function costOf(flood: Flood, size: number): Promise<string> {
  const store = new OpenedWriter({
    pending: { maxTransactions: 100_000, maxBytes: 256 * 1024 * 1024 },
    waiting: { maxTransactions: 1000, maxBytes: 100 * 1024 * 1024 },
  })
  try {
    const { submission, decide } = await flood(store)
    const submissions = Array.from({ length: size }, (_, n) => submission(n + 1))
    for (const each of submissions.slice(0, -LAST)) await store.submit(each)
    const last = submissions.slice(-LAST)
    const cost =
      (await cpuOf(async () => {
        for (const each of last) await store.submit(each)
      })) / last.length
    const subjects = submissions.flatMap(([subject]) => subject ?? [])
    const decided = decide && (await cpuOf(() => decide(store, subjects)))
    return decided === undefined ? cost.toFixed(2) : `${cost.toFixed(2)}, decided in ${decided.toFixed(0)}`
  } finally {
    await store.close()
  }
}

/** CPU of this process in milliseconds. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
