import fc from 'fast-check'
import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import { B_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import OrdinalsTopicManager from '../../../backend/src/topic-managers/OrdinalsTopicManager.js'
import { overridden } from '../../support/gateway/faults.js'
import {
  beefOf,
  bitcomTail,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { NON_STRICT, nonStrictlyUnlocked } from '../../support/protocol/non-strict-mints.js'
import { openStore } from '../../support/storage/stores.js'

async function judge(
  subject: FakeTransaction,
  options: {
    previousCoins?: number[]
    with?: FakeTransaction[]
    store?: Awaited<ReturnType<typeof openStore>>['store']
  } = {},
) {
  const { previousCoins = [], with: ancestors = [], store } = options
  const refusals: TopicRefusal[] = []
  const manager = new OrdinalsTopicManager({
    ...(store && { store }),
    onRefusal: (refusal) => refusals.push(refusal),
  })
  const beef = beefOf(subject, { with: ancestors })
  // As an engine asks before it fetches what is missing: nothing is kept in case it is an ordinal.
  const said = await manager.identifyAdmissibleOutputs(beef, previousCoins, undefined, 'historical-tx')
  const { outputsToAdmit, coinsToRetain } = said
  expect(coinsToRetain).toEqual(previousCoins)
  for (const refusal of refusals) expect(refusal).toMatchObject({ topic: 'tm_ordinals', txid: subject.txid })
  return { admitted: outputsToAdmit, codes: refusals.map(({ code }) => code) }
}

const locked = (satoshis: number): FakeOutput => ({ satoshis, lockingScript: p2pkh(2) })
const envelope = inscriptionScript({ contentType: 'text/plain', body: utf8('hello') })
const bData = concatBytes(Uint8Array.of(0), bitcomTail([B_MARKER, 'hello', 'text/plain']))
const map = concatBytes(p2pkh(1), mapTail({ app: 'x' }))

describe('an output is admitted for what it holds:', () => {
  test.each<[string, number, Uint8Array, boolean]>([
    ['an envelope in 1 satoshi', 1, envelope, true],
    ['an envelope in many satoshis', 5000, envelope, true],
    ['an envelope in none', 0, envelope, true],
    ['an empty body', 1, inscriptionScript({ contentType: 'text/plain', body: new Uint8Array() }), true],
    ['B data in no satoshi', 0, bData, true],
    ['MAP in 1 satoshi', 1, map, true],
    ['MAP in 2 satoshis', 2, map, false],
    ['MAP in no satoshi', 0, map, false],
    ['a lock and nothing else', 1, p2pkh(1), false],
    ['a MAP that sets nothing', 1, concatBytes(p2pkh(1), bitcomTail(['marker', 'SET'])), false],
  ])('%s', async (_, satoshis, lockingScript, admitted) => {
    const outputs = [locked(7), { satoshis, lockingScript }]
    const subject = new FakeChain().spend({ outputs })
    expect(await judge(subject)).toEqual(
      admitted ? { admitted: [1], codes: [] } : { admitted: [], codes: ['NO_ORDINAL'] },
    )
  })

  test('all that are there, in order', async () => {
    const subject = new FakeChain().spend({ outputs: [envelope, p2pkh(1), bData, map] })
    expect((await judge(subject)).admitted).toEqual([0, 2, 3])
  })
})

/** A transaction that spends coins of these values, each of a transaction of its own. */
function spending(values: readonly number[], outputs: readonly number[], chain = new FakeChain()) {
  const sources = values.map((value) => chain.spend({ outputs: [locked(value)] }))
  return { sources, subject: chain.spend({ inputs: sources, outputs: outputs.map(locked) }) }
}

test('an ordinal is admitted once where it flows into new content', async () => {
  const chain = new FakeChain()
  const first = chain.inscribe({ contentType: 'text/plain', body: utf8('a') })
  const second = chain.move(first, 0, envelope)
  expect((await judge(second, { previousCoins: [0], with: [first] })).admitted).toEqual([0])
})

describe('the values of spent coins', () => {
  test('that are not known do not keep content out', async () => {
    const chain = new FakeChain()
    const inputs = [chain.madeUpCoin(), chain.madeUpCoin()]
    const subject = chain.spend({ inputs, outputs: [locked(1), envelope] })
    expect(await judge(subject, { previousCoins: [1] })).toEqual({ admitted: [1], codes: ['UNKNOWN_VALUES'] })
  })

  test('are the transaction’s own word: an output that is not there has none', async () => {
    const chain = new FakeChain()
    const source = chain.spend({ outputs: [locked(1)] })
    const subject = chain.spend({ inputs: [{ transaction: source, vout: 1 }], outputs: [locked(1)] })
    const { codes } = await judge(subject, { previousCoins: [0], with: [source] })
    expect(codes).toContain('UNKNOWN_VALUES')
  })
})

test('without a tree, a mint that nodes disagree about is no ordinal until it is mined, as its tree may be pinned later', async () => {
  const chain = new FakeChain({ covenantVersion: 1 })
  const manager = new OrdinalsTopicManager()
  for (const unlocking of NON_STRICT) {
    const mint = chain.mint('a', { from: chain.node(''), ...nonStrictlyUnlocked(unlocking) })
    const admitted = async (proven: boolean): Promise<number[]> => {
      const beef = beefOf(mint, { proven, with: [chain.genesis] })
      return (await manager.identifyAdmissibleOutputs(beef, [])).outputsToAdmit
    }
    expect([unlocking.has, await admitted(false), await admitted(true)]).toEqual([unlocking.has, [], [2]])
  }
})

test('a store that failed once is asked again', async () => {
  const { store } = await openStore()
  const { sources, subject } = spending([1], [1])
  await store.record(sources)
  let failing = true
  const manager = new OrdinalsTopicManager({
    store: {
      names: store.names,
      ordinals: store.ordinals,
      transactions: overridden(store.transactions, {
        get: (txid) => {
          if (failing) throw new Error('the disk is away')
          return store.transactions.get(txid)
        },
      }),
    },
  })
  const beef = beefOf(subject)
  const admitted = async (): Promise<number[]> =>
    (await manager.identifyAdmissibleOutputs(beef, [0], undefined, 'historical-tx')).outputsToAdmit
  expect(await admitted()).toEqual([])
  failing = false
  expect(await admitted()).toEqual([0])
})

describe('against satoshis walked one by one', () => {
  /** Which output each ordinal falls into, by laying out every satoshi of every output. */
  function model(
    values: readonly number[],
    outputs: readonly number[],
    ordinals: readonly number[],
  ): number[] {
    const places = outputs.flatMap((value, vout) => new Array<number>(value).fill(vout))
    const found = ordinals
      .filter((input) => values[input] === 1)
      .map((input) => places[values.slice(0, input).reduce((sum, value) => sum + value, 0)])
    const received = found.filter((vout) => vout !== undefined).filter((vout) => outputs[vout] === 1)
    return [...new Set(received)].sort((a, b) => a - b)
  }
  const values = fc.array(fc.constantFrom(0, 1, 1, 1, 2, 7), { maxLength: 9 })
  const flow = fc
    .tuple(fc.array(fc.constantFrom(0, 1, 1, 1, 2, 7), { minLength: 1, maxLength: 9 }), values)
    .chain(([inputs, outputs]) =>
      fc.record({
        inputs: fc.constant(inputs),
        outputs: fc.constant(outputs),
        ordinals: fc.subarray(inputs.map((_, i) => i)),
        /** Where the value of each input is to be found. */
        known: fc.array(fc.constantFrom('beef', 'beef', 'store', 'nowhere'), {
          minLength: inputs.length,
          maxLength: inputs.length,
        }),
      }),
    )

  test('the same outputs are admitted where all values are known', async () => {
    const chain = new FakeChain()
    await fc.assert(
      fc.asyncProperty(flow, async ({ inputs, outputs, ordinals }) => {
        const { sources, subject } = spending(inputs, outputs, chain)
        const { admitted } = await judge(subject, { previousCoins: ordinals, with: sources })
        expect(admitted).toEqual(model(inputs, outputs, ordinals))
      }),
    )
  })

  test('and where some are not, those that no unknown value can move', async () => {
    const { store } = await openStore()
    const chain = new FakeChain()
    await fc.assert(
      fc.asyncProperty(flow, async ({ inputs, outputs, ordinals, known }) => {
        const { sources, subject } = spending(inputs, outputs, chain)
        await store.record(sources.filter((_, i) => known[i] === 'store'))
        const ancestors = sources.filter((_, i) => known[i] === 'beef')
        const { admitted, codes } = await judge(subject, { previousCoins: ordinals, with: ancestors, store })
        const placeable = ordinals.filter((input) => !known.slice(0, input + 1).includes('nowhere'))
        expect(admitted).toEqual(model(inputs, outputs, placeable))
        const lost = codes.filter((code) => code === 'UNKNOWN_VALUES')
        expect(lost).toHaveLength(ordinals.length - placeable.length)
      }),
    )
  })
})

describe('GASP is asked to bring', () => {
  const manager = new OrdinalsTopicManager()

  test('every input, since each one’s value places those after it', async () => {
    const { sources, subject } = spending([5, 1], [6, 1])
    const needed = sources.map(({ txid }) => ({ txid, outputIndex: 0 }))
    expect(await manager.identifyNeededInputs(beefOf(subject))).toEqual(needed)
  })

  test('every input of what has content, of whatever value', async () => {
    const chain = new FakeChain()
    const subject = chain.inscribe({ satoshis: 0, contentType: 'text/plain', body: utf8('a') })
    expect(await manager.identifyNeededInputs(beefOf(subject))).toHaveLength(1)
  })

  test('nothing for what cannot hold an ordinal', async () => {
    const { subject } = spending([5], [3, 0])
    await expect(manager.identifyNeededInputs(beefOf(subject))).rejects.toThrow('no output can be an ordinal')
  })
})
