import { LockingScript } from '@bsv/sdk'
import fc from 'fast-check'
import { ORIGIN, TIP } from '../../backend/src/graph/graph-store.js'
import { type BeefContents, readBeef } from '../../backend/src/graph/read-beef.js'
import { NamesLookupService } from '../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../backend/src/lookup-services/OrdinalsLookupService.js'
import { concatBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import NamesTopicManager from '../../backend/src/topic-managers/NamesTopicManager.js'
import OrdinalsTopicManager from '../../backend/src/topic-managers/OrdinalsTopicManager.js'
import {
  beefOf,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../support/fake-chain.js'
import { closeStores, openStore } from '../support/open-store.js'

// The life of ordinals, told in any order and with holes, against a plain model that walks the chain satoshi by satoshi.

afterEach(closeStores)

interface Deed {
  mint: boolean
  /** Coins to spend: held by the topic, or fresh ones of other values. */
  coins: ({ held: number } | { satoshis: number })[]
  outputs: { satoshis: number; holds: 'nothing' | 'content' | 'map' }[]
}

const deed: fc.Arbitrary<Deed> = fc.record({
  mint: fc.nat(3).map((chance) => chance === 0),
  coins: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ held: fc.nat(30) }) },
      { weight: 1, arbitrary: fc.record({ satoshis: fc.constantFrom(0, 1, 2, 7) }) },
    ),
    { minLength: 1, maxLength: 4 },
  ),
  outputs: fc.array(
    fc.record({
      satoshis: fc.constantFrom(0, 1, 1, 1, 1, 2, 5),
      holds: fc.constantFrom('nothing', 'nothing', 'nothing', 'content', 'map'),
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

function outputOf({ satoshis, holds }: Deed['outputs'][number], body: string): FakeOutput {
  const scripts = {
    nothing: p2pkh(3),
    content: inscriptionScript({ contentType: 'text/plain', body: utf8(body) }),
    map: concatBytes(p2pkh(3), mapTail({ body })),
  }
  return { satoshis, lockingScript: scripts[holds] }
}

/** A transaction as it is submitted, and what the topics admit of it. */
interface Submitted {
  transaction: FakeTransaction
  beef: Uint8Array
  admitted: { topic: string; vout: number }[]
}

/** Submits what comes of the deeds, one after the other, with every parent in the BEEF. */
async function live(deeds: Deed[]) {
  const chain = new FakeChain()
  const known = new Map<string, FakeTransaction>()
  const held = new Set<string>()
  const spent = new Set<string>()
  const names = new Set<string>()
  const submitted: Submitted[] = []
  const managers = {
    [TOPICS.names]: new NamesTopicManager({ deployment: chain.deployment }),
    [TOPICS.ordinals]: new OrdinalsTopicManager(),
  }
  const submit = async (transaction: FakeTransaction): Promise<void> => {
    known.set(transaction.txid, transaction)
    const { inputs } = transaction.transaction
    const parents = [...new Set(inputs.map(({ txid }) => txid))].flatMap((txid) => known.get(txid) ?? [])
    const beef = beefOf(transaction, { with: parents })
    const admitted: Submitted['admitted'] = []
    for (const topic of [TOPICS.names, TOPICS.ordinals]) {
      const coins = inputs.flatMap(({ txid, vout }, input) =>
        held.has(`${topic} ${txid}_${vout}`) ? [input] : [],
      )
      const { outputsToAdmit } = await managers[topic].identifyAdmissibleOutputs(beef, coins)
      for (const vout of outputsToAdmit) admitted.push({ topic, vout })
    }
    for (const { topic, vout } of admitted) held.add(`${topic} ${transaction.outpoint(vout)}`)
    submitted.push({ transaction, beef, admitted })
  }
  await submit(chain.genesis)
  let name = ''
  for (const [index, { mint, coins, outputs }] of deeds.entries()) {
    const free = [...held]
      .filter((key) => key.startsWith(TOPICS.ordinals))
      .map((key) => key.slice(TOPICS.ordinals.length + 1))
      .filter((key) => !spent.has(key))
    const inputs = coins.flatMap((asked): Outpoint[] => {
      // Where the topic holds no more, the coin is a fresh one.
      const coin = 'held' in asked && free.length === 0 ? { satoshis: 7 } : asked
      if ('held' in coin) return free.splice(coin.held % free.length, 1).map(parseOutpoint)
      const fresh = chain.spend({
        inputs: [],
        outputs: [{ satoshis: coin.satoshis, lockingScript: p2pkh(0) }],
      })
      known.set(fresh.txid, fresh)
      return [{ txid: fresh.txid, vout: 0 }]
    })
    for (const input of inputs) spent.add(formatOutpoint(input))
    if (mint) {
      name += 'n'
      const minted = chain.mint(name, { funding: inputs })
      names.add(minted.outpoint(2))
      // Only mints spend nodes, though an ordinal may have fallen into one.
      for (const vout of [0, 1]) spent.add(minted.outpoint(vout))
      await submit(minted)
    } else {
      const made = outputs.map((output) => outputOf(output, `body ${index}`))
      await submit(chain.spend({ inputs, outputs: made }))
    }
  }
  return { chain, known, names, submitted }
}

type Life = Awaited<ReturnType<typeof live>>

interface Told {
  sequence: number
  outpoint: string
  origin: string
  content: string
  tip: boolean
}

/** What is to be answered when these submissions have been told, worked out from the chain alone. */
function model(life: Life, told: Submitted[]) {
  const held = new Set(
    told.flatMap(({ transaction, admitted }) =>
      admitted.filter(({ topic }) => topic === TOPICS.ordinals).map(({ vout }) => transaction.outpoint(vout)),
    ),
  )
  const genuine = new Set(
    told.map(({ transaction }) => transaction.outpoint(2)).filter((outpoint) => life.names.has(outpoint)),
  )
  const output = (outpoint: string) => {
    const { txid, vout } = parseOutpoint(outpoint)
    return life.known.get(txid)?.transaction.outputs[vout]
  }
  const hasContent = (outpoint: string): boolean => {
    const script = Buffer.from(output(outpoint)?.lockingScript ?? []).toString('latin1')
    return script.includes('\x03ordQ')
  }
  /** The coin that the satoshi in a 1-sat output was before, where that coin held nothing else. */
  const before = (outpoint: string): string | undefined => {
    const { txid, vout } = parseOutpoint(outpoint)
    const transaction = life.known.get(txid)?.transaction
    if (transaction === undefined) return undefined
    const place = transaction.outputs.slice(0, vout).reduce((sum, { satoshis }) => sum + satoshis, 0)
    const satoshis = transaction.inputs.flatMap((input) => {
      const value = output(formatOutpoint(input))?.satoshis ?? 0
      return Array.from({ length: value }, () => ({ coin: formatOutpoint(input), value }))
    })
    const satoshi = satoshis[place]
    return satoshi?.value === 1 ? satoshi.coin : undefined
  }
  /** The outputs from the first that is known, and whether nothing is missing before that. */
  const lineageOf = (outpoint: string): { run: string[]; whole: boolean } => {
    const run = [outpoint]
    for (let at = outpoint; ; ) {
      const previous = genuine.has(at) ? undefined : before(at)
      if (previous === undefined) return { run, whole: true }
      if (!held.has(previous)) return { run, whole: false }
      run.unshift(previous)
      at = previous
    }
  }
  const nextOf = (outpoint: string): string | undefined =>
    [...held].find((each) => output(each)?.satoshis === 1 && !genuine.has(each) && before(each) === outpoint)

  const answer = (outpoint: string, sequence: number): Told | undefined => {
    if (output(outpoint)?.satoshis !== 1) {
      const alone = hasContent(outpoint) && [0, TIP, ORIGIN].includes(sequence)
      return alone ? { sequence: 0, outpoint, origin: outpoint, content: outpoint, tip: true } : undefined
    }
    const { run, whole } = lineageOf(outpoint)
    for (let next = nextOf(outpoint); next !== undefined; next = nextOf(next)) run.push(next)
    const origin = run.findIndex(hasContent)
    if (!whole || origin === -1) return undefined
    const step = sequence === TIP ? run.length - 1 : sequence === ORIGIN ? origin : origin + sequence
    const [at, content] = [run[step], run.slice(0, step + 1).findLast(hasContent)]
    const first = run[origin]
    if (at === undefined || content === undefined || first === undefined) return undefined
    return { sequence: step - origin, outpoint: at, origin: first, content, tip: step === run.length - 1 }
  }
  return { held, answer }
}

async function tell(life: Life, told: Submitted[]) {
  const { store } = await openStore()
  let current: BeefContents | undefined
  const submissions = { submitted: () => current }
  const services = [
    new NamesLookupService({ reader: store, writer: store, deployment: life.chain.deployment, submissions }),
    new OrdinalsLookupService({ reader: store, writer: store, submissions }),
  ]
  for (const { transaction, beef, admitted } of told) {
    current = readBeef(Uint8Array.from(beef))
    for (const { topic, vout } of admitted) {
      const output = transaction.transaction.outputs[vout]
      if (output === undefined) throw new Error('an output that is not there was admitted')
      for (const service of services) {
        await service.outputAdmittedByTopic({
          mode: 'locking-script',
          txid: transaction.txid,
          outputIndex: vout,
          topic,
          satoshis: output.satoshis,
          lockingScript: LockingScript.fromBinary(Array.from(output.lockingScript)),
        })
      }
    }
  }
  return store
}

test('every step of every ordinal is what the chain says, in whatever order it was told and with whatever holes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(deed, { minLength: 3, maxLength: 14 }),
      fc.array(fc.nat(0xffff), { minLength: 16, maxLength: 16 }),
      fc.nat(3),
      async (deeds, places, holes) => {
        const life = await live(deeds)
        const shuffled = life.submitted
          .map((each, index) => ({ each, place: places[index] ?? 0 }))
          .sort((a, b) => a.place - b.place)
          .map(({ each }) => each)
        const told = shuffled.slice(holes)
        const { held, answer } = model(life, told)
        const store = await tell(life, told)
        for (const outpoint of held) {
          for (let sequence = -2; sequence <= deeds.length + 1; sequence++) {
            const step = await store.ordinalAt(parseOutpoint(outpoint), sequence)
            expect(
              step && {
                sequence: step.sequence,
                outpoint: formatOutpoint(step.output.outpoint),
                origin: formatOutpoint(step.origin),
                content: formatOutpoint(step.content.outpoint),
                tip: step.tip,
              },
            ).toEqual(answer(outpoint, sequence))
          }
        }
        await closeStores()
      },
    ),
    { numRuns: 60, endOnFailure: true },
  )
}, 120_000)

test('the histories of that test have long lives, reinscriptions and holes', async () => {
  const [deeds = []] = fc.sample(fc.array(deed, { minLength: 60, maxLength: 60 }), { seed: 11, numRuns: 1 })
  const life = await live(deeds)
  const { held, answer } = model(life, life.submitted.slice(12))
  const tips = [...held].map((outpoint) => answer(outpoint, TIP))
  expect(tips.filter((tip) => tip === undefined).length).toBeGreaterThan(3)
  expect(tips.filter((tip) => (tip?.sequence ?? 0) >= 3).length).toBeGreaterThan(3)
  expect(tips.filter((tip) => tip && tip.content !== tip.origin).length).toBeGreaterThan(2)
})
