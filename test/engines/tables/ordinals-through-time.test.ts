import fc from 'fast-check'
import { type Attribute, attribute } from '../../../backend/src/graph/attributes.js'
import { type GraphReader, type GraphStore, TIP } from '../../../backend/src/graph/graph-store.js'
import { EMPTY_MAP, mapRecordOf } from '../../../backend/src/graph/map-merge.js'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deed, KEYS, type Life, live, ownerOf, type Submitted } from '../../support/graph/life.js'
import { model, type OrdinalStep } from '../../support/graph/life-model.js'
import { shuffled } from '../../support/storage/insertion-order.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

// The life of ordinals, recorded in any order and with holes, against a plain model that walks the chain satoshi by satoshi.

async function admit(store: GraphStore, life: Life, submitted: Submitted[]): Promise<void> {
  const services = [
    new NamesLookupService({ reader: store, writer: store, deployment: life.chain.deployment }),
    new OrdinalsLookupService({ reader: store, writer: store }),
  ]
  for (const { transaction, beef, admitted } of submitted) {
    const atomicBEEF = Uint8Array.from(beef) as unknown as number[]
    for (const { topic, vout } of admitted) {
      if (transaction.transaction.outputs[vout] === undefined)
        throw new Error('an output that is not there was admitted')
      for (const service of services)
        await service.outputAdmittedByTopic({ mode: 'whole-tx', topic, outputIndex: vout, atomicBEEF })
    }
  }
}

/** Every ordinal is found by what it says where it is now, and by nothing else. */
async function expectAttributes(
  store: Pick<GraphReader, 'attributes' | 'transactions'>,
  { names, said, known }: Life,
  { tips, answer }: ReturnType<typeof model>,
): Promise<void> {
  // By whatever the store holds: what places an ordinal comes along with it, and spends something too.
  const spent = new Set<string>()
  for (const { txid, transaction } of known.values())
    if ((await store.transactions.get(txid)) !== undefined)
      for (const input of transaction.inputs) spent.add(formatOutpoint(input))
  const found = async (...attributes: Attribute[]): Promise<string[]> =>
    (await store.attributes.tipsWith({ attributes, limit: 1000 })).map(formatOutpoint).sort()
  const current = new Map(tips.map((tip) => [tip, answer(tip, TIP)]))
  const where = (has: (ordinal: OrdinalStep, tip: string) => boolean): string[] =>
    tips.filter((tip) => {
      const ordinal = current.get(tip)
      return ordinal !== undefined && has(ordinal, tip)
    })
  expect(await found(attribute.contentType('Text/Plain; charset=utf-8'))).toEqual(
    where(({ content }) => !names.has(content)).sort(),
  )
  for (const named of new Set([...said.values()].flatMap(({ parent }) => parent ?? [])))
    expect(await found(attribute.parent(parseOutpoint(named)))).toEqual(
      where(({ parent }) => parent === named).sort(),
    )
  for (const key of KEYS) {
    const owned = tips.filter((tip) => !spent.has(tip) && said.get(tip)?.owner === ownerOf(key))
    expect(await found(attribute.owner(ownerOf(key)))).toEqual(owned.sort())
  }
  const entries = [...current.values()].flatMap((ordinal) =>
    Object.entries(ordinal?.map ?? {}).flatMap(([key, value]) =>
      [value].flat().map((text) => [key, text] as const),
    ),
  )
  for (const [key, text] of [...entries, ['key 0', 'never said'] as const]) {
    const has = ({ map }: OrdinalStep): boolean => [map[key] ?? []].flat().includes(text)
    expect(await found(attribute.map(key, text))).toEqual(where(has).sort())
    expect(await found(attribute.contentType('text/plain'), attribute.map(key, text))).toEqual(
      where((ordinal) => has(ordinal) && !names.has(ordinal.content)).sort(),
    )
  }
}

onEachTableEngine(({ openStore, closeStores, runs }) => {
  afterEach(closeStores)

  test('every step of every ordinal is what the chain says, whatever order it is recorded in and whatever is missing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(deed, { minLength: 3, maxLength: 14 }),
        fc.array(fc.nat(0xffff), { minLength: 16, maxLength: 16 }),
        fc.nat(3),
        async (deeds, places, holes) => {
          const life = await live(deeds)
          const submitted = shuffled(life.submitted, places).slice(holes)
          const expected = model(life, submitted)
          const { held, answer } = expected
          const { store } = await openStore()
          await admit(store, life, submitted)
          for (const outpoint of held) {
            for (let sequence = -2; sequence <= deeds.length + 1; sequence++) {
              const step = await store.ordinals.at(parseOutpoint(outpoint), sequence)
              expect(
                step && {
                  sequence: step.sequence,
                  outpoint: formatOutpoint(step.output.outpoint),
                  origin: formatOutpoint(step.origin),
                  content: formatOutpoint(step.content.outpoint),
                  tip: step.tip,
                  parent: step.parent && formatOutpoint(step.parent),
                  map: mapRecordOf((await store.metadata.merged(step.output.outpoint)) ?? EMPTY_MAP),
                },
              ).toEqual(answer(outpoint, sequence))
            }
          }
          await expectAttributes(store, life, expected)
          await closeStores()
        },
      ),
      { numRuns: runs(20), endOnFailure: true },
    )
  })

  test('the histories of that test have long lives, reinscriptions and holes', async () => {
    const [deeds = []] = fc.sample(fc.array(deed, { minLength: 60, maxLength: 60 }), {
      seed: 11,
      numRuns: runs(1),
    })
    const life = await live(deeds)
    const { held, answer } = model(life, life.submitted.slice(12))
    const tips = [...held].map((outpoint) => answer(outpoint, TIP))
    expect(tips.filter((tip) => tip === undefined).length).toBeGreaterThan(3)
    expect(tips.filter((tip) => (tip?.sequence ?? 0) >= 3).length).toBeGreaterThan(3)
    expect(tips.filter((tip) => tip && tip.content !== tip.origin).length).toBeGreaterThan(2)
    expect(tips.filter((tip) => Object.keys(tip?.map ?? {}).length > 0).length).toBeGreaterThan(2)
    expect(tips.filter((tip) => tip?.parent !== undefined).length).toBeGreaterThan(0)
  })
})
