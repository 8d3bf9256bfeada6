import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { attribute } from '../../../backend/src/graph/listings.js'
import { ORIGIN, TIP } from '../../../backend/src/graph/records.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import type { ListPlace, NewestQuery, OrdinalHistory } from '../../../backend/src/read/listings.js'
import { Reader } from '../../../backend/src/read/reader.js'
import type { Writer } from '../../../backend/src/writer/writer.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { FactFiles } from '../../support/storage/fact-files.js'

// Every port says the same of these transactions as an older store did, which had nothing in common with the index of facts.

const CHUNK = 'application/x-chunk'
const chain = new FakeChain()
const arrivals: { transaction: FakeTransaction; height?: number | undefined }[] = []

function add(transaction: FakeTransaction, height?: number): FakeTransaction {
  arrivals.push({ transaction, height })
  return transaction
}

const text = (body: string, more: Partial<Parameters<typeof inscriptionScript>[0]> = {}): Uint8Array =>
  inscriptionScript({ contentType: 'text/plain', body: utf8(body), ...more })
const coin = (transaction: FakeTransaction, vout = 0) => ({ transaction, vout })
const spend = (inputs: ReturnType<typeof coin>[], ...scripts: (Uint8Array | number)[]): FakeTransaction =>
  chain.spend({
    inputs,
    outputs: scripts.map((each) =>
      typeof each === 'number'
        ? { satoshis: each, lockingScript: p2pkh(each) }
        : { satoshis: 1, lockingScript: each },
    ),
  })
const outpointOf = (transaction: FakeTransaction, vout: number): Outpoint => ({
  txid: transaction.txid,
  vout,
})

/** Names, moved and minted again; ordinals with everything that can be said of them; and some whose start is missing. */
function world(): void {
  add(chain.genesis, 100)
  const [a, ab, b] = ['a', 'ab', 'b'].map((name, at) =>
    add(chain.mint(name), at === 2 ? undefined : 101 + at),
  )
  if (!a || !ab || !b) throw new Error('there are three')
  const moved = add(spend([coin(a, 2)], p2pkh(7)), 105)
  add(spend([coin(moved)], text('said at a name', { suffix: mapTail({ app: 'notes', name: 'x' }) })))
  // Nothing but a mint spends a node.
  add(spend([coin(b, 1)], p2pkh(3)))
  const purse = add(spend([], 50), 90)
  const first = add(
    spend([coin(purse)], text('first', { suffix: mapTail({ app: 'notes', a: '1' }) }), 40),
    110,
  )
  const second = add(spend([coin(first)], concatBytes(p2pkh(5), mapTail({ a: '2', b: '3' }))), 111)
  const child = add(spend([coin(second)], text('again', { parent: outpointOf(second, 0) })), 112)
  const paid = add(spend([], 30), 80)
  const claims = add(spend([coin(paid)], text('no child', { parent: outpointOf(first, 0) })))
  add(spend([coin(child)], p2pkh(8)))
  add(spend([coin(claims)], 0))
  add(chain.inscribe({ contentType: 'image/png', body: utf8('not an ordinal'), satoshis: 500 }), 120)
  const carried = add(spend([coin(add(spend([coin(add(spend([], 9), 70))], p2pkh(1)), 71))], p2pkh(2)), 72)
  add(spend([coin(carried)], text('on a coin')), 73)
  const streamed = add(spend([coin(add(spend([], 8), 60))], text('stream')), 61)
  let last = streamed
  for (let at = 0; at < 30; at++)
    last = add(
      spend([coin(last)], inscriptionScript({ contentType: CHUNK, body: utf8(`chunk ${at}`) })),
      62 + at,
    )
  add(spend([coin(last)], text('the end')))
  // Their coins never come.
  let unknown = add(chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: text('lost') }] }), 130)
  for (let at = 0; at < 15; at++)
    unknown = add(
      spend([coin(unknown)], inscriptionScript({ contentType: CHUNK, body: utf8(`lost ${at}`) })),
      131,
    )
  const behind = chain.spend({
    inputs: [chain.madeUpCoin(), coin(child, 0)],
    outputs: [
      { satoshis: 1, lockingScript: p2pkh(4) },
      { satoshis: 1, lockingScript: text('placed?') },
    ],
  })
  add(behind)
  add(
    spend(
      [coin(add(spend([], 700), 65))],
      inscriptionScript({ contentType: 'a/b', body: new Uint8Array(700_000).fill(7) }),
    ),
    66,
  )
}

let files: FactFiles
let reader: Reader
let store: FactStore

beforeAll(async () => {
  world()
  files = new FactFiles(chain.deployment)
  for (const { transaction, height } of arrivals) files.add(transaction, height)
  reader = new Reader(files)
  store = new FactStore({ reader, writer: {} as Writer })
})
afterAll(() => {
  reader.close()
  files.close()
})

async function all<Item>(items: Iterable<Item> | AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

/** Every output, also of transactions that are not stored. */
function outpoints(): Outpoint[] {
  return arrivals.flatMap(({ transaction }) => {
    const { txid, transaction: view } = transaction
    return view.outputs.map((_, vout) => ({ txid, vout }))
  })
}

/** Without the coin that an output received: it is in no answer of the service, and facts are not asked for it. */
function plain(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || answer instanceof Map || answer instanceof Set)
    return answer
  if (Array.isArray(answer)) return answer.map(plain)
  const entries = Object.entries(answer).filter(([key]) => key !== 'previous')
  return Object.fromEntries(entries.map(([key, value]) => [key, plain(value)]))
}

const FILE = new URL('older-answers.json', import.meta.url)
/** The digests of what the older store of tables answered, a line a question. The transactions are the same each time. */
const recorded = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string>
let questions = 0

/** Compares the answer to a question about each of these with the recorded one. */
async function compare<Subject>(
  subjects: Subject[],
  ask: (store: FactStore, subject: Subject) => unknown,
): Promise<void> {
  const name = `${expect.getState().currentTestName} ${++questions}`
  const expected = recorded[name]?.split(' ') ?? []
  expect(expected).toHaveLength(subjects.length)
  for (const [at, subject] of subjects.entries()) {
    const answer = canonical(plain(await ask(store, subject)))
    const digest = createHash('sha256').update(answer).digest('hex').slice(0, 12)
    expect({ subject, answer, digest }).toMatchObject({ digest: expected[at] })
  }
}

/** As text, whatever the order of keys, and without what is undefined. */
function canonical(value: unknown): string {
  const text = JSON.stringify(value, (_key, each: unknown) => {
    if (each instanceof Map) return [...each]
    if (each instanceof Set) return [...each]
    if (ArrayBuffer.isView(each))
      return Buffer.from(each.buffer, each.byteOffset, each.byteLength).toString('hex')
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
  return text ?? 'undefined'
}

beforeEach(() => {
  questions = 0
})

const txids = (): string[] => [...arrivals.map(({ transaction }) => transaction.txid), 'ab'.repeat(32)]
const sorted = (list: unknown[]): string[] => list.map((each) => JSON.stringify(each)).sort()

test('transactions', async () => {
  await compare(txids(), async ({ transactions }, txid) => {
    const raw = await transactions.raw(txid)
    const bytes = raw && Buffer.concat([...raw.chunks()].map((each) => each.bytes)).toString('hex')
    const record = await transactions.get(txid)
    return {
      record: record && { ...record, raw: Buffer.from(record.raw).toString('hex') },
      proof: raw?.proof && Buffer.from(raw.proof.merklePath).toString('hex'),
      raw: raw && [bytes, raw.length, raw.txid],
      tail: raw && [...raw.chunks(raw.length - 1)].map(({ at, bytes }) => [at, bytes.length]),
      has: await transactions.has(txid),
      height: await transactions.heightOf(txid),
      reason: await transactions.reasonAgainst(txid),
      tiers: await transactions.tiers([txid]),
    }
  })
  await compare(outpoints(), ({ transactions }, outpoint) => transactions.spenderOf(outpoint))
})

test('names', async () => {
  await compare(['', 'a', 'ab', 'b', 'c', 'abc', 'a0'], async ({ names }, name) => ({
    origin: await names.originOf(name),
    live: await names.liveNode(name),
    seen: await names.liveNode(name, { seen: true }),
    longest: await names.longestNode(`${name}zz`),
    longestSeen: await names.longestNode(`${name}zz`, { seen: true }),
    prefix: await names.byPrefix({ prefix: name, limit: 2 }),
    after: await names.byPrefix({ prefix: '', after: name, limit: 2 }),
  }))
  await compare([outpoints()], async ({ names }, all) => ({
    claimed: sorted(await names.claimed(['a', 'b', 'ab', 'zz'])),
    nodes: sorted(await names.genuineNodes(all)),
    origins: sorted(await names.genuineOrigins(all)),
  }))
})

test('ordinals and their metadata', async () => {
  await compare(outpoints(), async ({ ordinals, metadata }, outpoint) => {
    const steps: Record<number, unknown> = {}
    for (const sequence of [TIP, ORIGIN, 0, 1, 2, 3, 40])
      steps[sequence] = await ordinals.at(outpoint, sequence)
    return {
      steps,
      output: await ordinals.output(outpoint),
      content: await ordinals.firstContentOutput(outpoint.txid),
      current: await ordinals.currentOutput(outpoint),
      lineage: await all(ordinals.lineage(outpoint)),
      own: await metadata.own(outpoint),
      merged: await metadata.merged(outpoint),
      limited: await metadata.merged(outpoint, 10),
    }
  })
})

test('streams and content', async () => {
  await compare(outpoints(), async ({ streams }, outpoint) => {
    const query = { outpoint, chunkTypes: [CHUNK] }
    return {
      summary: await streams.summary(query),
      chunks: await all(streams.chunks(query)),
    }
  })
  await compare(outpoints(), async ({ ordinals, content }, outpoint) => {
    const sha256 = (await ordinals.output(outpoint))?.content?.sha256
    if (sha256 === undefined) return undefined
    const read = async (range?: { from: number; length: number }): Promise<string> =>
      Buffer.concat(await all(content.chunks(sha256, range))).toString('hex')
    const chunks = [
      await content.chunk(sha256, 0),
      await content.chunk(sha256, 1),
      await content.chunk(sha256, 9),
    ]
    return {
      all: await read(),
      range: await read({ from: 2, length: 300_000 }),
      late: await read({ from: 400_000, length: 3 }),
      chunks: chunks.map((each) => each && Buffer.from(each).toString('hex')),
    }
  })
})

test('lists', async () => {
  const withoutOrder = <Row extends { recency: number }>({ recency, ...row }: Row) => ({
    ...row,
    recency: recency < 2 ** 32 ? recency : 'unproven',
  })
  await compare([1, 3, 100], async ({ listings }, limit) => {
    const pages = async <Row extends ListPlace>(
      read: (query: NewestQuery) => Row[] | Promise<Row[]>,
    ): Promise<unknown[]> => {
      const rows: unknown[] = []
      for (let after: Row | undefined; ; ) {
        const page = await read({ limit, ...(after && { after }) })
        rows.push(...page.map(withoutOrder))
        after = page.at(-1)
        if (page.length < limit) return rows
      }
    }
    const names = await pages((query) => listings.newestNames(query))
    const inscriptions = await pages((query) => listings.newestInscriptions(query))
    return { names, inscriptions }
  })
  await compare([''], async ({ listings }) => {
    // These facts are written without the door, which keeps what nothing needs apart.
    const { transactions, ...counts } = await listings.counts()
    return counts
  })
  await compare(['', 'a', 'b'], ({ listings }, domain) => listings.childNodes(domain))
  await compare(txids(), async ({ listings }, txid) => ({
    all: await listings.transaction({ txid, limit: 10 }),
    first: await listings.transaction({ txid, limit: 1 }),
    after: await listings.transaction({ txid, after: 1, limit: 1 }),
  }))
  // How long MAP is was not said then.
  const withoutLengths = (history: OrdinalHistory | undefined) =>
    history && {
      ...history,
      steps: history.steps.map(({ mapLength, ...step }) => ({ ...step, hasMap: mapLength !== undefined })),
    }
  await compare(outpoints(), ({ listings }, outpoint) => ({
    oldest: withoutLengths(listings.history({ outpoint, order: 'oldest', limit: 100 })),
    newest: withoutLengths(listings.history({ outpoint, order: 'newest', limit: 2 })),
    from: withoutLengths(listings.history({ outpoint, order: 'oldest', from: 1, limit: 1 })),
    back: withoutLengths(listings.history({ outpoint, order: 'newest', from: 1, limit: 5 })),
    behind: withoutLengths(listings.history({ outpoint, order: 'newest', from: 99, limit: 5 })),
  }))
})

test('ordinals by what they are found by', async () => {
  const owner = (seed: number): string => Buffer.from(p2pkh(seed).subarray(3, 23)).toString('hex')
  const lists = [
    [attribute.contentType('text/plain')],
    [attribute.map('app', 'notes')],
    [attribute.map('app', 'notes'), attribute.contentType('text/plain')],
    ...[1, 2, 3, 4, 5, 7, 8].map((seed) => [attribute.owner(owner(seed))]),
    ...outpoints().map((outpoint) => [attribute.parent(outpoint)]),
    [attribute.map('app', 'other')],
  ]
  for (const limit of [2, 100])
    await compare(lists, async ({ listings }, list) => {
      const [tips, ordinals] = [[] as Outpoint[], [] as unknown[]]
      for (let after: Outpoint | undefined; ; ) {
        const page = await listings.tipsWith({ attributes: list, limit, ...(after && { after }) })
        const shown = await listings.ordinalsWith({ attributes: list, limit, ...(after && { after }) })
        expect(shown.map(({ outpoint }) => outpoint)).toEqual(page)
        tips.push(...page)
        ordinals.push(...shown)
        after = page.at(-1)
        if (page.length < limit) break
      }
      return { tips: tips.map(formatOutpoint), ordinals }
    })
})

test('what a follower asks', async () => {
  await compare([3, 100], async ({ frontier, blocks }, limit) => {
    const tips: string[] = []
    for (let after: Outpoint | undefined; ; ) {
      const page = await frontier.tips({ limit, ...(after && { after }) })
      tips.push(...page.tips.map(formatOutpoint))
      if (page.next === undefined) break
      after = page.next
    }
    const unproven: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await frontier.unproven({ limit, ...(after !== undefined && { after }) })
      unproven.push(...page.txids)
      if (page.next === undefined) break
      after = page.next
    }
    return {
      tips: tips.sort(),
      unproven: unproven.sort(),
      latest: sorted(await frontier.latest({ limit })),
      blocks: await blocks.from({ from: 70 }),
      last: await blocks.lastHeight(),
    }
  })
  await compare(outpoints(), async ({ admissions }, outpoint) => {
    const found = await admissions.of(outpoint)
    return found.map(({ topic }) => topic)
  })
  await compare(['tm_names', 'tm_ordinals'], async ({ admissions }, topic) => {
    const unspent = await admissions.unspentOfTopic({ topic, since: 0 })
    const applied: boolean[] = []
    for (const txid of txids()) applied.push(await admissions.isApplied(topic, txid))
    return { unspent: unspent.map(({ outpoint }) => formatOutpoint(outpoint)), applied }
  })
})
