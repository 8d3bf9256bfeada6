import { attribute } from '../../../backend/src/graph/attributes.js'
import { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import { type GraphStore, TIP } from '../../../backend/src/graph/graph-store.js'
import type { HistoryStep, ListPlace, NewestQuery } from '../../../backend/src/graph/listings.js'
import { type GraphRecords, graphRecords, type OutputRecord } from '../../../backend/src/graph/records.js'
import { encodeHeader } from '../../../backend/src/protocol/block-header.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const txid = (number: number): string => number.toString(16).padStart(64, '0')
const at = (number: number, vout = 0): Outpoint => ({ txid: txid(number), vout })
const contentOf = (number: number, contentType = 'text/plain') => ({
  sha256: txid(number),
  contentType,
  length: number,
})
/** Three outputs of one satoshi, whatever the store is told that they are. */
const raw = encodeTransaction({
  inputs: [],
  outputs: Array.from({ length: 3 }, () => ({ satoshis: 1, lockingScript: new Uint8Array() })),
})
const proofAt = (height: number) => ({ merklePath: Uint8Array.of(1), height, root: txid(height) })

/** A transaction, proven at a height if there is one, with outputs that it inscribes. */
function inscribing(
  number: number,
  { height, outputs = [{}] }: { height?: number; outputs?: Partial<OutputRecord>[] } = {},
): GraphRecords {
  return graphRecords({
    transactions: [{ txid: txid(number), raw, ...(height && { proof: proofAt(height) }) }],
    outputs: outputs.map((output, vout) => ({
      outpoint: at(number, vout),
      satoshis: 1,
      content: contentOf(number),
      ...output,
    })),
  })
}

/** A mint as a store records it: it restates the node that it spends, and leaves one of its own and a name. */
function minting(
  number: number,
  { name, spent, height }: { name: string; spent: Outpoint; height?: number },
) {
  return graphRecords({
    transactions: [{ txid: txid(number), raw, ...(height && { proof: proofAt(height) }) }],
    spends: [{ outpoint: spent, spender: txid(number) }],
    nodes: [
      { outpoint: at(number, 0), domain: name.slice(0, -1) },
      { outpoint: at(number, 1), domain: name },
    ],
    names: [{ outpoint: at(number, 2), name }],
    outputs: [{ outpoint: at(number, 2), satoshis: 1, content: contentOf(number, 'application/name-claim') }],
  })
}

/** The genesis, and mints of `a`, `b`, `ab` and `ac`, in blocks 11 to 14. */
async function mintTree(store: GraphStore): Promise<void> {
  await store.record(
    graphRecords({
      transactions: [{ txid: txid(1), raw, proof: proofAt(10) }],
      nodes: [{ outpoint: at(1), domain: '' }],
    }),
  )
  await store.record(minting(2, { name: 'a', spent: at(1), height: 11 }))
  await store.record(minting(3, { name: 'b', spent: at(2), height: 12 }))
  await store.record(minting(4, { name: 'ab', spent: at(2, 1), height: 13 }))
  await store.record(minting(5, { name: 'ac', spent: at(4), height: 14 }))
}

/** All pages of a list, as outpoints; between two of them, something may happen. */
async function pagesOf<Row extends ListPlace>(
  read: (query: NewestQuery) => Promise<Row[]>,
  { limit, between }: { limit: number; between?: () => Promise<void> },
): Promise<Row[]> {
  const rows: Row[] = []
  for (let page = await read({ limit }); page.length > 0; ) {
    rows.push(...page)
    await between?.()
    const after = page.at(-1)
    page = await read({ limit, ...(after && { after }) })
  }
  return rows
}

const placesOf = (rows: { outpoint: Outpoint }[]): string[] =>
  rows.map(({ outpoint: { txid, vout } }) => `${Number.parseInt(txid, 16)}:${vout}`)

onEachTableEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  const open = async (): Promise<GraphStore> => (await openStore()).store

  test('inscriptions are listed unproven ones first, by arrival, then by height and outpoint', async () => {
    const store = await open()
    const outputs = [{}, {}, {}]
    await store.record(inscribing(7, { height: 20 }))
    await store.record(inscribing(3, { height: 30, outputs }))
    await store.record(inscribing(9))
    await store.record(inscribing(8, { height: 30 }))
    await store.record(inscribing(2))
    const expected = ['2:0', '9:0', '8:0', '3:2', '3:1', '3:0', '7:0']
    const read = (query: NewestQuery) => store.listings.newestInscriptions(query)
    expect(placesOf(await read({ limit: 100 }))).toEqual(expected)
    for (const limit of [1, 2, 3, 5]) expect(placesOf(await pagesOf(read, { limit }))).toEqual(expected)
    expect(await read({ limit: 3 })).toMatchObject([
      { outpoint: at(2), satoshis: 1, content: contentOf(2) },
      { outpoint: at(9) },
      { outpoint: at(8), height: 30, content: contentOf(8) },
    ])
    expect((await read({ limit: 1 }))[0]).not.toHaveProperty('height')
  })

  test('pages neither repeat nor leave out a row while others arrive', async () => {
    const store = await open()
    for (let number = 1; number <= 12; number++)
      await store.record(inscribing(number, number % 3 === 0 ? {} : { height: 100 + (number % 4) }))
    const read = (query: NewestQuery) => store.listings.newestInscriptions(query)
    const before = placesOf(await read({ limit: 100 }))
    let arriving = 50
    const between = async (): Promise<void> => {
      await store.record(inscribing(arriving++))
      await store.record(inscribing(arriving++, { height: 101 }))
    }
    const seen = placesOf(await pagesOf(read, { limit: 2, between }))
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.filter((each) => before.includes(each))).toEqual(before)
  })

  test('a row moves to its block when its transaction is proven, and back when the block is gone', async () => {
    const store = await open()
    await store.record(inscribing(1, { height: 40 }))
    await store.record(inscribing(2))
    await store.record(inscribing(3))
    const listed = async (): Promise<string[]> =>
      placesOf(await store.listings.newestInscriptions({ limit: 9 }))
    expect(await listed()).toEqual(['3:0', '2:0', '1:0'])
    await store.record(inscribing(3, { height: 30 }))
    expect(await listed()).toEqual(['2:0', '1:0', '3:0'])
    await store.record(inscribing(2, { height: 50 }))
    expect(await store.listings.newestInscriptions({ limit: 1 })).toMatchObject([{ height: 50 }])
    await store.disprove({ height: 50, root: txid(50) })
    await store.disprove({ height: 30, root: txid(30) })
    expect(await listed()).toEqual(['3:0', '2:0', '1:0'])
    expect(await store.listings.counts()).toMatchObject({ inscriptions: 3, transactions: 3 })
  })

  test('outputs without content are in no list, and neither are names and further chunks of streams', async () => {
    const store = await open()
    const types = ['gw/stream', 'application/name-claim', 'text/plain; stream=gw', '']
    const outputs: Partial<OutputRecord>[] = types.map((type) => ({ content: contentOf(1, type) }))
    const { content: _, ...bare } = { outpoint: at(2), satoshis: 1, content: undefined }
    await store.record(inscribing(1, { outputs }))
    await store.record(graphRecords({ ...inscribing(2), outputs: [bare] }))
    expect(placesOf(await store.listings.newestInscriptions({ limit: 9 }))).toEqual(['1:3', '1:2'])
    expect(await store.listings.counts()).toEqual({ names: 0, inscriptions: 2, transactions: 2 })
  })

  test('names are listed and counted apart', async () => {
    const store = await open()
    await mintTree(store)
    expect(await store.listings.newestNames({ limit: 2 })).toMatchObject([
      { name: 'ac', outpoint: at(5, 2), height: 14 },
      { name: 'ab', outpoint: at(4, 2), height: 13 },
    ])
    const names = await pagesOf((query) => store.listings.newestNames(query), { limit: 3 })
    expect(names.map(({ name }) => name)).toEqual(['ac', 'ab', 'b', 'a'])
    expect(await store.listings.newestInscriptions({ limit: 9 })).toEqual([])
    expect(await store.listings.counts()).toEqual({ names: 4, inscriptions: 0, transactions: 5 })
  })

  test('what is recorded twice counts once', async () => {
    const store = await open()
    for (let time = 0; time < 2; time++) {
      await mintTree(store)
      await store.record(inscribing(7, { outputs: [{}, {}] }))
    }
    expect(await store.listings.counts()).toEqual({ names: 4, inscriptions: 2, transactions: 6 })
  })

  test('what loses a conflict leaves the lists, and returns when the proof of the winner is gone', async () => {
    const store = await open()
    await mintTree(store)
    const other = minting(6, { name: 'ad', spent: at(5) })
    await store.record(other)
    await store.record(minting(7, { name: 'ae', spent: at(5), height: 15 }))
    const names = async (): Promise<string[]> =>
      (await store.listings.newestNames({ limit: 9 })).map(({ name }) => name)
    const nodes = async (): Promise<string[]> =>
      (await store.listings.childNodes('a')).map(({ domain }) => domain)
    expect(await names()).toEqual(['ae', 'ac', 'ab', 'b', 'a'])
    expect(await nodes()).toEqual(['ab', 'ac', 'ae'])
    expect(await store.listings.counts()).toEqual({ names: 5, inscriptions: 0, transactions: 7 })
    expect(await store.listings.transaction({ txid: txid(6), limit: 9 })).toEqual({
      ...{ txid: txid(6), isActive: false, outputs: [] },
    })
    await store.disprove({ height: 15, root: txid(15) })
    expect(await names()).toEqual(['ad', 'ac', 'ab', 'b', 'a'])
    expect(await nodes()).toEqual(['ab', 'ac', 'ad'])
    expect(await store.listings.counts()).toEqual({ names: 5, inscriptions: 0, transactions: 7 })
  })

  test('the nodes below a domain come with their live nodes and how much was mined from them', async () => {
    const store = await open()
    await mintTree(store)
    expect(await store.listings.childNodes('')).toEqual([
      { domain: 'a', outpoint: at(5), children: 2 },
      { domain: 'b', outpoint: at(3, 1), children: 0 },
    ])
    expect(await store.listings.childNodes('a')).toEqual([
      { domain: 'ab', outpoint: at(4, 1), children: 0 },
      { domain: 'ac', outpoint: at(5, 1), children: 0 },
    ])
    expect(await store.listings.childNodes('ab')).toEqual([])
    expect(await store.listings.childNodes('a'.repeat(255))).toEqual([])
  })

  /** An ordinal of so many steps after its origin, inscribed again at step 4, with a parent and MAP at step 2. */
  async function ordinal(store: GraphStore, last: number): Promise<void> {
    await store.record(inscribing(100, { height: 60 }))
    for (let step = 1; step <= last; step++) {
      const number = 100 + step
      await store.record(
        graphRecords({
          transactions: [
            {
              txid: txid(number),
              raw,
              ...(step < last && { proof: proofAt(60 + step) }),
            },
          ],
          spends: [{ outpoint: at(number - 1), spender: txid(number) }],
          outputs: [
            {
              ...{ outpoint: at(number), satoshis: 1, previous: at(number - 1) },
              owner: number.toString(16).padStart(40, '0'),
              ...(step === 4 && { content: contentOf(number, 'image/png') }),
              ...(step === 2 && { content: contentOf(number), parent: at(9) }),
            },
          ],
        }),
      )
    }
  }

  test('the history of an ordinal is read from either end, a page at a time', async () => {
    const store = await open()
    await ordinal(store, 6)
    const { listings } = store
    const outpoint = at(103)
    const whole = await listings.history({ outpoint, order: 'oldest', limit: 100 })
    expect(whole).toMatchObject({ origin: at(100), last: 6 })
    expect(whole?.steps.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(whole?.steps.map((step) => step.outpoint)).toEqual(
      [100, 101, 102, 103, 104, 105, 106].map((n) => at(n)),
    )
    expect(whole?.steps.map(({ height }) => height)).toEqual([60, 61, 62, 63, 64, 65, undefined])
    expect(whole?.steps[4]).toEqual({
      ...{ sequence: 4, outpoint: at(104), height: 64, hasMap: false },
      ...{ owner: '68'.padStart(40, '0'), content: contentOf(104, 'image/png') },
    })
    expect(whole?.steps[2]).toMatchObject({ content: contentOf(102), parent: at(9) })
    expect(whole?.steps[1]).not.toHaveProperty('content')
    const sequences = async (order: 'oldest' | 'newest', from?: number): Promise<number[] | undefined> =>
      (await listings.history({ outpoint, order, limit: 3, ...(from !== undefined && { from }) }))?.steps.map(
        (step: HistoryStep) => step.sequence,
      )
    expect(await sequences('oldest')).toEqual([0, 1, 2])
    expect(await sequences('oldest', 5)).toEqual([5, 6])
    expect(await sequences('oldest', 7)).toEqual([])
    expect(await sequences('newest')).toEqual([6, 5, 4])
    expect(await sequences('newest', 3)).toEqual([3, 2, 1])
    expect(await sequences('newest', 0)).toEqual([0])
    expect(await sequences('newest', 2 ** 40)).toEqual([6, 5, 4])
  })

  test('a history takes as many reads after a thousand steps as after ten', async () => {
    const opened = await openStore()
    const { store } = opened
    await ordinal(store, 10)
    const readsOf = async (): Promise<number> => {
      const before = opened.reads()
      await store.listings.history({ outpoint: at(100), order: 'newest', limit: 5 })
      return opened.reads() - before
    }
    const short = await readsOf()
    const spends = Array.from({ length: 300 }, (_, index) => 111 + index)
    await store.record(
      graphRecords({
        transactions: spends.map((number) => ({ txid: txid(number), raw })),
        spends: spends.map((number) => ({ outpoint: at(number - 1), spender: txid(number), satoshis: 1 })),
        outputs: spends.map((number) => ({ outpoint: at(number), satoshis: 1, previous: at(number - 1) })),
      }),
    )
    expect(await readsOf()).toBeLessThanOrEqual(short + 1)
  })

  test('an output of another value has a history of one step; what is not here has none', async () => {
    const store = await open()
    await store.record(inscribing(1, { outputs: [{ satoshis: 5 }] }))
    expect(await store.listings.history({ outpoint: at(1), order: 'newest', limit: 5 })).toEqual({
      origin: at(1),
      last: 0,
      steps: [{ sequence: 0, outpoint: at(1), content: contentOf(1), hasMap: false }],
    })
    expect(await store.listings.history({ outpoint: at(2), order: 'newest', limit: 5 })).toBeUndefined()
  })

  test('ordinals by what they are found by come with their origin, content and height', async () => {
    const store = await open()
    await ordinal(store, 6)
    await store.record(inscribing(7, { height: 20, outputs: [{ content: contentOf(7, 'image/png') }] }))
    const attributes = [attribute.contentType('image/png')]
    const found = await store.listings.ordinalsWith({ attributes, limit: 9 })
    expect(found).toEqual([
      {
        ...{ outpoint: at(7), origin: at(7), sequence: 0, height: 20 },
        ...{ contentOutpoint: at(7), content: contentOf(7, 'image/png') },
      },
      {
        ...{ outpoint: at(106), origin: at(100), sequence: 6, owner: '6a'.padStart(40, '0') },
        ...{ contentOutpoint: at(104), content: contentOf(104, 'image/png') },
      },
    ])
    const after = found[0]?.outpoint
    expect(placesOf(await store.listings.ordinalsWith({ attributes, limit: 1 }))).toEqual(['7:0'])
    expect(
      placesOf(await store.listings.ordinalsWith({ attributes, limit: 1, ...(after && { after }) })),
    ).toEqual(['106:0'])
  })

  test('each of any number of ordinals is listed as its own record has it', async () => {
    const store = await open()
    const owner = '0a'.repeat(20)
    for (let number = 200; number < 255; number++)
      await store.record(inscribing(number, { height: number, outputs: [{ owner }] }))
    await ordinal(store, 12)
    await store.record(
      graphRecords({
        outputs: [
          // Of another value; without content; of a lineage that begins with what is not here; moved there.
          { outpoint: at(300), satoshis: 5, owner, content: contentOf(300) },
          { outpoint: at(301), satoshis: 1, owner },
          { outpoint: at(302), satoshis: 1, owner, previous: at(999), unsettled: true },
          { outpoint: at(303), satoshis: 1, owner, previous: at(112), content: contentOf(303) },
        ],
      }),
    )
    for (const by of [attribute.owner(owner), attribute.contentType('text/plain')]) {
      const query = { attributes: [by], limit: 100 }
      const tips = await store.attributes.tipsWith(query)
      const expected = await Promise.all(
        tips.map(async (outpoint) => {
          const step = await store.ordinals.at(outpoint, TIP)
          const height = await store.transactions.heightOf(outpoint.txid)
          const holder = (await store.ordinals.output(outpoint))?.owner
          return {
            ...{ outpoint, ...(holder !== undefined && { owner: holder }) },
            ...(height !== undefined && { height }),
            ...(step && {
              ...{ origin: step.origin, sequence: step.sequence },
              ...{ contentOutpoint: step.content.outpoint, content: step.content.content },
            }),
          }
        }),
      )
      expect(expected.length).toBeGreaterThan(55)
      expect(await store.listings.ordinalsWith(query)).toEqual(expected)
    }
  })

  test('those of some names that are claimed are found at once, without blocked ones', async () => {
    const { store } = await openStore()
    await mintTree(store)
    const asked = ['ab', 'b', 'zz', 'a', 'ab', ...Array.from({ length: 60 }, (_, index) => `none${index}`)]
    const claimed = async (from: Pick<GraphStore, 'names'>): Promise<string[]> =>
      (await from.names.claimed(asked))
        .map(({ name, outpoint }) => `${name} ${placesOf([{ outpoint }])}`)
        .sort()
    expect(await claimed(store)).toEqual(['a 2:2', 'ab 4:2', 'b 3:2'])
    expect(await store.names.claimed([])).toEqual([])
    await store.blocklist.add({ kind: 'name', value: 'ab', reason: 'a test', since: 0 })
    expect(await claimed(new BlocklistFilter(store))).toEqual(['a 2:2', 'b 3:2'])
  })

  test('a transaction shows what of it is here, with what spends that', async () => {
    const store = await open()
    await mintTree(store)
    const name = { content: contentOf(4, 'application/name-claim'), outpoint: at(4, 2), satoshis: 1 }
    const outputs = [
      { vout: 0, domain: 'a', spender: txid(5) },
      { vout: 1, domain: 'ab' },
      { vout: 2, output: name, name: 'ab' },
    ]
    const asked = { txid: txid(4), limit: 9 }
    const common = { txid: txid(4), height: 13, isActive: true }
    expect(await store.listings.transaction(asked)).toEqual({ ...common, outputs })
    expect(await store.listings.transaction({ ...asked, limit: 2 })).toEqual({
      ...{ ...common, outputs: outputs.slice(0, 2), next: 1 },
    })
    expect(await store.listings.transaction({ ...asked, limit: 2, after: 1 })).toEqual({
      ...{ ...common, outputs: outputs.slice(2) },
    })
    expect(await store.listings.transaction({ txid: txid(99), limit: 1 })).toBeUndefined()
  })

  test('blocks have the times in their headers, where the store has those', async () => {
    const store = (await openStore()).store
    const header = (time: number): Uint8Array =>
      encodeHeader({ version: 1, previous: txid(0), root: txid(0), time, bits: 0, nonce: 0 })
    const headers = joinBytes(Array.from({ length: 150 }, (_, index) => header(1_700_000_000 + index)))
    await store.headers.replaceFrom({ height: 1050, headers, tip: undefined })
    expect(await store.listings.blockTimes([1050, 1100, 1199, 1049, 1200, 5])).toEqual(
      new Map([
        [1050, 1_700_000_000],
        [1100, 1_700_000_050],
        [1199, 1_700_000_149],
      ]),
    )
    expect(await store.listings.blockTimes([])).toEqual(new Map())
  })

  test('what is blocked is left out of pages, which are full all the same', async () => {
    const { store } = await openStore()
    await mintTree(store)
    await ordinal(store, 6)
    for (let number = 20; number < 26; number++) await store.record(inscribing(number, { height: number }))
    const { listings } = new BlocklistFilter(store)
    const block = async (kind: 'outpoint' | 'content' | 'name', value: string): Promise<void> => {
      await store.blocklist.add({ kind, value, reason: 'a test', since: 0 })
    }
    await block('outpoint', formatOutpoint(at(24)))
    await block('content', txid(23))
    await block('name', 'ab')
    await block('content', txid(104))
    const read = (query: NewestQuery) => listings.newestInscriptions(query)
    expect(placesOf(await pagesOf(read, { limit: 2 }))).toEqual([
      '102:0',
      '100:0',
      '25:0',
      '22:0',
      '21:0',
      '20:0',
    ])
    expect(placesOf(await listings.newestNames({ limit: 2 }))).toEqual(['5:2', '3:2'])
    const history = await listings.history({ outpoint: at(100), order: 'oldest', from: 4, limit: 1 })
    expect(history?.steps).toEqual([
      { sequence: 4, outpoint: at(104), height: 64, hasMap: false, blocked: true },
    ])
    const attributes = [attribute.contentType('image/png')]
    expect(await listings.ordinalsWith({ attributes, limit: 9 })).toEqual([])
    expect(await listings.transaction({ txid: txid(24), limit: 9 })).toMatchObject({
      outputs: [{ vout: 0, blocked: true }],
    })
    expect(await listings.counts()).toMatchObject({ names: 4 })
  })
})
