import type { ReadBeef } from '../../../backend/src/graph/read-beef.js'
import { decodeSyncHint, encodeSyncHint, hexOfSyncHint } from '../../../backend/src/graph/sync-hint.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type IndexReader, syncedBeefs } from '../../../backend/src/read/host-index.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

// What an engine that syncs from a host of ours asks the topic manager, one transaction at a time.

const chain = new FakeChain()
const origin = chain.inscribe({ contentType: 'text/plain', body: utf8('first') })
const coin = chain.spend({ outputs: [{ satoshis: 7, lockingScript: p2pkh(1) }] })
const chapter = inscriptionScript({ contentType: 'text/plain', body: utf8('second') })
const moved = chain.spend({
  inputs: [coin, origin],
  outputs: [{ satoshis: 7, lockingScript: p2pkh(0) }, chapter],
})
const hint = Array.from(utf8(encodeSyncHint({ inputs: [1], coins: [coin.raw] })))

/** An index that holds these outputs as ordinals, and no transaction. */
function indexWith(...held: string[]): IndexReader {
  const index = {
    transactions: { get: () => undefined },
    names: { genuineNodes: () => [] },
    ordinals: {
      output: ({ txid, vout }: { txid: string; vout: number }) =>
        held.includes(`${txid}_${vout}`) ? { outpoint: { txid, vout }, satoshis: 1 } : undefined,
    },
  }
  return index as unknown as IndexReader
}

/** One in the host of an engine, and the txids of what it was shown and nobody has refused. */
function indexThatSees(): { store: IndexReader; seen: Set<string> } {
  const seen = new Set<string>()
  const submissions = {
    see: ({ subject }: ReadBeef) => void seen.add(subject.txid),
    refuse: (txid: string) => void seen.delete(txid),
  }
  return { store: Object.assign(indexWith(), { submissions }), seen }
}

async function admitted(
  manager: OrdinalsTopicManager,
  subject: FakeTransaction,
  asked: { coins?: number[]; says?: number[] } = {},
): Promise<number[]> {
  const { coins = [], says } = asked
  const beef = Array.from(beefOf(subject))
  return (await manager.identifyAdmissibleOutputs(beef, coins, says, 'historical-tx')).outputsToAdmit
}

test('the ordinal that a peer serves is requested, and no other coin', async () => {
  const manager = new OrdinalsTopicManager({ store: indexWith() })
  // It has content of its own: without the hint, nothing would be requested.
  expect(await admitted(manager, moved)).toEqual([1])
  expect(await admitted(manager, moved, { says: hint })).toEqual([])
  expect(await manager.identifyNeededInputs(beefOf(moved))).toEqual([{ txid: origin.txid, outputIndex: 0 }])
  // Afterwards the engine judges the whole graph, without the hint.
  expect(await admitted(manager, origin)).toEqual([0])
  expect(await admitted(manager, moved, { coins: [1] })).toEqual([1])
})

test('nothing is requested that the index has', async () => {
  const manager = new OrdinalsTopicManager({ store: indexWith(origin.outpoint(0)) })
  expect(await admitted(manager, moved, { says: hint })).toEqual([1])
  expect(await manager.identifyNeededInputs(beefOf(moved))).toEqual([])
})

test('a coin places the ordinal, though the BEEF lacks it', async () => {
  const plain = chain.spend({
    inputs: [coin, origin],
    outputs: [{ satoshis: 6, lockingScript: p2pkh(0) }, p2pkh(1), p2pkh(2)],
  })
  const manager = new OrdinalsTopicManager({ store: indexWith(origin.outpoint(0)) })
  // Satoshi 7, the ordinal, is in output 2; the one before is of the coin.
  expect(await admitted(manager, plain, { says: hint })).toEqual([2])
})

test('a transaction that is none of what is spent is dropped', async () => {
  const other = chain.inscribe({ contentType: 'text/plain', body: utf8('other') })
  const says = Array.from(utf8(encodeSyncHint({ inputs: [], coins: [other.raw] })))
  const manager = new OrdinalsTopicManager({ store: indexWith() })
  expect(await admitted(manager, moved, { says })).toEqual([1])
})

test('a hint is read as it was written, and anything else is none', () => {
  const written = { inputs: [0, 12], coins: [Uint8Array.of(1, 255), Uint8Array.of(0)] }
  expect(decodeSyncHint(Array.from(utf8(encodeSyncHint(written))))).toEqual(written)
  // Engines hand on the characters of the hex that a host sends.
  const hex = hexOfSyncHint(written)
  for (const sent of [hex, hex.toUpperCase()]) expect(decodeSyncHint(Array.from(utf8(sent)))).toEqual(written)
  const nothing = { inputs: [], coins: [] }
  expect(decodeSyncHint(Array.from(utf8(encodeSyncHint(nothing))))).toEqual(nothing)
  const many = Array.from({ length: 101 }, (_, i) => i).join(',')
  const others = [
    '',
    'minetree',
    'minetree x ',
    'minetree 1 f',
    'minetree 1 0x',
    `minetree ${many} `,
    'other 1 ',
  ]
  for (const text of [...others, hex.slice(0, -1), `${hex}zz`])
    expect(decodeSyncHint(Array.from(utf8(text)))).toBeUndefined()
  expect(decodeSyncHint(new Array<number>(1_200_000).fill(48))).toBeUndefined()
  expect(decodeSyncHint(undefined)).toBeUndefined()
})

describe('a dry run of the engine', () => {
  const dry = { dryRun: true }
  type Mode = 'historical-tx' | 'current-tx'

  test.each<Mode>(['historical-tx', 'current-tx'])(
    'with %s remembers nothing and reports nothing',
    async (mode) => {
      const { store, seen } = indexThatSees()
      const refusals: unknown[] = []
      const manager = new OrdinalsTopicManager({ store, onRefusal: (refusal) => refusals.push(refusal) })
      const plain = chain.spend({ outputs: [{ satoshis: 5, lockingScript: p2pkh(1) }] })
      const fresh = chain.inscribe({ contentType: 'text/plain', body: utf8(`dry with ${mode}`) })
      for (const subject of [fresh, plain, moved])
        for (const says of [undefined, hint])
          await manager.identifyAdmissibleOutputs(Array.from(beefOf(subject)), [], says, mode, dry)
      expect([seen, [fresh, plain].filter(({ txid }) => syncedBeefs.has(txid))]).toEqual([new Set(), []])
      expect(refusals).toEqual([])
      // Not what a peer said either.
      expect(await manager.identifyNeededInputs(beefOf(moved))).toHaveLength(2)
    },
  )

  test('forgets nothing that was submitted', async () => {
    const { store, seen } = indexThatSees()
    const manager = new OrdinalsTopicManager({ store })
    const fresh = chain.inscribe({ contentType: 'text/plain', body: utf8('submitted') })
    await manager.identifyAdmissibleOutputs(Array.from(beefOf(fresh)), [])
    await manager.identifyAdmissibleOutputs(Array.from(beefOf(fresh)), [], undefined, 'current-tx', dry)
    expect(seen).toEqual(new Set([fresh.txid]))
    manager.abortAdmissibleOutputs(beefOf(fresh))
    expect(seen).toEqual(new Set())
  })

  test('has the engine ask for what the peer serves, and then admit the graph', async () => {
    const manager = new OrdinalsTopicManager({ store: indexWith() })
    const judged = async (subject: FakeTransaction, coins: number[], says?: number[]): Promise<number[]> => {
      const beef = Array.from(beefOf(subject))
      return (await manager.identifyAdmissibleOutputs(beef, coins, says, 'historical-tx', dry)).outputsToAdmit
    }
    // As `OverlayGASPStorage` does: first each node, then the whole graph with the coins that it found in it.
    expect(await judged(moved, [], hint)).toEqual([])
    const needed = [{ txid: origin.txid, outputIndex: 0 }]
    expect(await manager.identifyNeededInputs(beefOf(moved), hint)).toEqual(needed)
    expect([await judged(origin, []), await judged(origin, [])]).toEqual([[0], [0]])
    expect(await judged(moved, [1])).toEqual([1])
  })

  test('admits a transfer whose ordinal is in the graph, also without a hint', async () => {
    const manager = new OrdinalsTopicManager({ store: indexWith() })
    const transfer = chain.spend({ inputs: [origin], outputs: [p2pkh(8)] })
    const beef = Array.from(beefOf(transfer))
    const judge = async (coins: number[]): Promise<number[]> =>
      (await manager.identifyAdmissibleOutputs(beef, coins, undefined, 'historical-tx', dry)).outputsToAdmit
    expect([await judge([]), await judge([0])]).toEqual([[], [0]])
  })
})
