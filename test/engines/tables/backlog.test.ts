import { LostConflictError } from '../../../backend/src/graph/errors.js'
import { UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { spendsBy } from '../../../backend/src/graph/transaction-records.js'
import {
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
} from '../../support/protocol/fake-chain.js'
import { ANYONE, bareTransaction } from '../../support/protocol/transactions.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

// What one write leaves to the writes after it (`backend/src/storage/write/backlog.ts`): in the end the store is what it would be if
// one write had done it all.

const COIN: FakeOutput = { satoshis: 1, lockingScript: ANYONE }
const INSCRIBED: FakeOutput = {
  satoshis: 1,
  lockingScript: inscriptionScript({ lock: ANYONE, body: Uint8Array.of(0x61) }),
}
const MANY = 7

type Step = FakeTransaction & { proven?: boolean }

function spending({ txid }: { txid: string }, outputs = [COIN], vout = 0): FakeTransaction {
  return bareTransaction({ inputs: [{ txid, vout }], outputs })
}

function lineOf(first: FakeTransaction, length: number): FakeTransaction[] {
  const line = [first]
  for (let tip = first; line.length < length; line.push(tip)) tip = spending(tip)
  return line
}

async function record(store: OpenedStore['store'], { txid, raw, height, proven }: Step): Promise<void> {
  const proof = { merklePath: Uint8Array.of(1), height, root: txid }
  const transactions = [{ txid, raw, ...(proven && { proof }) }]
  const records = graphRecords({ transactions, spends: spendsBy(viewOf({ txid, raw })) })
  await store.record(records, { subjects: [txid] })
}

/** Outputs that wait for their parent; blank coins that wait for their inscription; a branch that is reorganised. */
const CASES: Record<string, (chain: FakeChain) => Step[]> = {
  'children that wait for their parent': (chain) => {
    const coin = bareTransaction({
      inputs: [chain.madeUpCoin()],
      outputs: [{ satoshis: MANY + 1, lockingScript: ANYONE }],
    })
    const parent = spending(
      coin,
      Array.from({ length: MANY }, () => INSCRIBED),
    )
    const children = parent.transaction.outputs.map((_, vout) => spending(parent, [COIN], vout))
    return [...children, coin, parent]
  },
  'a line that comes last first': (chain) => {
    const coin = bareTransaction({
      inputs: [chain.madeUpCoin()],
      outputs: [{ satoshis: 2, lockingScript: ANYONE }],
    })
    return [coin, ...lineOf(spending(coin, [INSCRIBED]), MANY)].reverse()
  },
  'coins without content in front of an ordinal': (chain) => {
    const coin = bareTransaction({
      inputs: [chain.madeUpCoin()],
      outputs: [{ satoshis: 2, lockingScript: ANYONE }],
    })
    const line = lineOf(spending(coin), MANY)
    return [coin, ...line, spending(line.at(-1) ?? coin, [INSCRIBED])]
  },
  'outputs with content that wait for the value of a coin': (chain) => {
    const coin = bareTransaction({
      inputs: [chain.madeUpCoin()],
      outputs: Array.from({ length: MANY }, () => COIN),
    })
    const others = coin.transaction.outputs.map((_, vout) => spending(coin, [INSCRIBED], vout))
    return [...others, coin]
  },
  'spenders of many coins that one transaction spends again': (chain) => {
    const coins = Array.from({ length: MANY }, () => chain.madeUpCoin())
    const firsts = coins.map((coin) => bareTransaction({ inputs: [coin], outputs: [INSCRIBED] }))
    const seconds = firsts.map((first) => spending(first))
    const doubleSpend = bareTransaction({ inputs: coins, outputs: [INSCRIBED, COIN], height: 900 })
    return [...firsts, ...seconds, { ...doubleSpend, proven: true }, spending(doubleSpend)]
  },
  'a branch that is reorganised, and reorganised back': (chain) => {
    const funding = chain.madeUpCoin()
    const first = bareTransaction({ inputs: [funding], outputs: [INSCRIBED, INSCRIBED] })
    const branch = lineOf(first, MANY)
    const others = lineOf(spending(first, [INSCRIBED], 1), MANY)
    const doubleSpend = bareTransaction({ inputs: [funding], outputs: [INSCRIBED, COIN], height: 900 })
    return [
      ...[...branch, ...others, { ...doubleSpend, proven: true }, spending(doubleSpend)],
      { ...first, height: 800, proven: true },
    ]
  },
}

onEachTableEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  async function opened(chain: FakeChain, reevaluations?: number): Promise<OpenedStore> {
    const each = await openStore()
    each.store.deriveBy({
      rules: () => admissionRules({ deployment: chain.deployment, onRefusal: () => {} }),
      pending: { maxTransactions: 1000, maxBytes: 1024 * 1024 },
      ...(reevaluations !== undefined && { reevaluations }),
    })
    return each
  }

  test.each(Object.entries(CASES))('%s come to the same in many writes as in one', async (_, stepsOf) => {
    const chain = new FakeChain()
    const whole = await opened(chain)
    const parted = await opened(chain, 1)
    let writes = 0
    for (const step of stepsOf(chain)) {
      await record(whole.store, step)
      await record(parted.store, step)
      while (await parted.store.backlog.workOff()) writes++
      expect(await comparable(parted)).toEqual(await comparable(whole))
    }
    expect(writes).toBeGreaterThan(2)
    expect(await whole.store.backlog.workOff()).toBe(false)
  })

  test('what would lose to something that is not decided yet is to be sent again', async () => {
    const chain = new FakeChain()
    const { store } = await opened(chain, 1)
    const funding = chain.madeUpCoin()
    const first = bareTransaction({ inputs: [funding], outputs: [INSCRIBED] })
    const branch = lineOf(first, MANY)
    for (const step of branch) await record(store, step)
    const doubleSpend = bareTransaction({ inputs: [funding], outputs: [INSCRIBED, COIN] })
    await record(store, { ...doubleSpend, proven: true })
    const late = spending(branch[2] ?? first, [INSCRIBED])
    await expect(record(store, late)).rejects.toThrow(UnstableReadError)
    while (await store.backlog.workOff()) {
      // Until nothing is left.
    }
    await expect(record(store, late)).rejects.toThrow(LostConflictError)
  })
})

/** All that is stored, but for when it was admitted, and in how many writes. */
async function comparable({ rows }: OpenedStore): Promise<Record<string, string[]>> {
  const all = Object.entries(await rows())
  return Object.fromEntries(
    all.map(([table, held]) => [
      table,
      held.map((row) => row.replace(/"score":\d+|"(?:turns|scores)","value":"\d+"/, '')).sort(),
    ]),
  )
}
