import { createHash, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { graphRecords, type NodeRecord, type OutputRecord } from '../../../backend/src/graph/records.js'
import { reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

/** A txid that a number tells from others. */
const txid = (number: number): string => number.toString(16).padStart(64, 'a')
const at = (number: number, vout = 0): Outpoint => ({ txid: txid(number), vout })
const spend = (outpoint: Outpoint, spender: number) => ({ outpoint, spender: txid(spender) })
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const text = (value: string): Uint8Array => new TextEncoder().encode(value)

/** An output of 1 satoshi that shows these bytes. */
function showing(outpoint: Outpoint, bytes: Uint8Array, contentType = 'text/plain') {
  const sha256 = hashOf(bytes)
  const content = { sha256, contentType, length: bytes.length }
  return { output: { outpoint, satoshis: 1, content }, body: { sha256, bytes } }
}

async function chunksOf(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return all
}

const transactionOf = (chain: FakeChain): FakeTransaction =>
  chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }] })

onEachTableEngine(({ openStore, closeStores, runs }) => {
  afterEach(closeStores)

  describe('a fresh store', () => {
    test('answers every question with nothing', async () => {
      const { store } = await openStore()
      await store.ping()
      expect(await store.transactions.get(txid(1))).toBeUndefined()
      expect(await store.names.originOf('a')).toBeUndefined()
      expect(await store.names.liveNode('')).toBeUndefined()
      expect(await store.names.longestNode('a')).toBeUndefined()
      expect(await store.names.genuineOrigins([at(1)])).toEqual([])
      expect(await store.names.genuineOrigins([])).toEqual([])
      expect(await store.names.byPrefix({ prefix: '', limit: 10 })).toEqual([])
      expect(await store.ordinals.output(at(1))).toBeUndefined()
      expect(await store.ordinals.firstContentOutput(txid(1))).toBeUndefined()
      expect(await chunksOf(store.content.chunks(txid(1)))).toEqual([])
      expect(await store.admissions.of(at(1))).toEqual([])
      expect(await store.admissions.ofTransaction(txid(1))).toEqual([])
      expect(await store.admissions.unspentOfTopic({ topic: 'tm_names', since: 0 })).toEqual([])
      expect(await store.admissions.isApplied('tm_names', txid(1))).toBe(false)
      expect(await store.transactions.spenderOf(at(1))).toBeUndefined()
      expect(await store.transactions.reasonAgainst(txid(2))).toBeUndefined()
      expect(await store.backlog.workBehind({ txids: [txid(1)], limit: 10 })).toBe(0)
      expect(await store.blocks.from({ from: 0 })).toEqual([])
      expect(await store.blocks.ofConflicts([spend(at(1), 2)])).toEqual([])
      expect(await store.interactions.last('https://a.example', 'tm_names')).toBe(0)
      expect(await store.settings.get('genesis')).toBeUndefined()
    })

    test('may be opened again, and keeps what it holds', async () => {
      const { store } = await openStore()
      await store.settings.set('genesis', 'here')
      await store.open()
      expect(await store.settings.get('genesis')).toBe('here')
      await store.settings.set('genesis', 'there')
      expect(await store.settings.get('genesis')).toBe('there')
    })
  })

  describe('record', () => {
    /** One fact of each kind and more. */
    function everything() {
      const chain = new FakeChain()
      const [one, two] = [transactionOf(chain), transactionOf(chain)]
      const { output, body } = showing(at(1), text('hello'))
      return graphRecords({
        transactions: [recordOf(one, 5), recordOf(two)],
        // Of the last two, one is inactive.
        spends: [spend(at(1), 2), spend(at(4), 5), spend(at(4), 6)],
        outputs: [output, { outpoint: at(2), satoshis: 1, previous: at(1) }],
        contents: [body],
        nodes: [
          { outpoint: at(3), domain: 'a' },
          { outpoint: at(6), domain: 'b' },
        ],
        names: [{ outpoint: at(3, 2), name: 'a' }],
        admissions: [{ topic: 'tm_names', outpoint: at(3), score: 7 }],
        applied: [{ topic: 'tm_names', txid: txid(3) }],
      })
    }

    test('changes nothing when it is repeated', async () => {
      const opened = await openStore()
      await opened.store.record(everything())
      await opened.store.sightings.record([{ txid: txid(9), status: 'rejected' }])
      const rows = await opened.rows()
      for (const [table, held] of Object.entries(rows))
        if (
          !/ancestors|backlog|blocked|evictions|headers|held|hook_notes|interactions|pending|settings/.test(
            table,
          )
        )
          expect([table, held.length]).not.toEqual([table, 0])
      await opened.store.record(everything())
      expect(await opened.rows()).toEqual(rows)
    })

    test('of the same facts twice in one call is as if they came once', async () => {
      const [once, twice] = [await openStore(), await openStore()]
      const records = everything()
      await once.store.record(records)
      const doubled = Object.entries(records).map(([kind, facts]) => [kind, [...facts, ...facts]])
      await twice.store.record({ ...records, ...Object.fromEntries(doubled) })
      expect(await twice.rows()).toEqual(await once.rows())
    })

    test.each(['graph_transactions', 'graph_outputs', 'graph_pieces', 'graph_admissions', 'graph_applied'])(
      'that fails at %s leaves nothing',
      async (table) => {
        const opened = await openStore()
        const { store } = opened
        const before = await opened.rows()
        const mend = await opened.breakInserts(table)
        await expect(store.record(everything())).rejects.toThrow('the disk is full')
        expect(await opened.rows()).toEqual(before)
        await mend()
        await store.record(everything())
        expect(await store.admissions.isApplied('tm_names', txid(3))).toBe(true)
      },
    )

    test('of a fact that the schema refuses leaves nothing', async () => {
      const opened = await openStore()
      const before = await opened.rows()
      const bad = { topic: 'tm_names', outpoint: at(1), score: null as unknown as number }
      await expect(opened.store.record({ ...everything(), admissions: [bad] })).rejects.toThrow()
      expect(await opened.rows()).toEqual(before)
    })

    test('takes more facts than one statement holds', async () => {
      const { store } = await openStore()
      const outpoints = Array.from({ length: 1001 }, (_, vout) => at(1, vout))
      const names = outpoints.map((outpoint) => ({ outpoint, name: `n${outpoint.vout}` }))
      await store.record(graphRecords({ names }))
      expect(await store.names.genuineOrigins(outpoints)).toHaveLength(1001)
    })

    test('at once with others loses nothing', async () => {
      const { store } = await openStore()
      const names = Array.from({ length: 20 }, (_, i) => ({ outpoint: at(i, 2), name: `n${i}` }))
      await Promise.all(names.map((name) => store.record(graphRecords({ names: [name] }))))
      expect(await store.names.byPrefix({ prefix: 'n', limit: 100 })).toHaveLength(20)
    })
  })

  describe('a transaction', () => {
    test('comes back with its proof or without one', async () => {
      const chain = new FakeChain()
      const [proven, unproven] = [recordOf(transactionOf(chain), 800_005), recordOf(transactionOf(chain))]
      const { store } = await openStore()
      await store.record(graphRecords({ transactions: [proven, unproven] }))
      expect(await store.transactions.get(proven.txid)).toEqual(proven)
      expect(await store.transactions.get(unproven.txid)).toEqual(unproven)
    })

    test('of several chunks comes back whole', async () => {
      const chain = new FakeChain()
      const lockingScript = new Uint8Array(randomBytes(600 * 1024))
      const transaction = recordOf(chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] }))
      const { store } = await openStore()
      await store.record(graphRecords({ transactions: [transaction] }))
      const found = await store.transactions.get(transaction.txid)
      expect(hashOf(found?.raw ?? new Uint8Array())).toBe(hashOf(transaction.raw))
    })

    test('keeps a proof of any length', async () => {
      const { store } = await openStore()
      const chain = new FakeChain()
      const transaction = recordOf(transactionOf(chain))
      const proof = { merklePath: new Uint8Array(100_000).fill(7), height: 5, root: txid(9) }
      await store.record(graphRecords({ transactions: [{ ...transaction, proof }] }))
      expect((await store.transactions.get(transaction.txid))?.proof).toEqual(proof)
    })

    test('takes a proof that comes later, and a newer one, and never loses it', async () => {
      const transaction = transactionOf(new FakeChain())
      const { store } = await openStore()
      const heightAfter = async (...heights: (number | undefined)[]) => {
        const transactions = heights.map((height) => recordOf(transaction, height))
        await store.record(graphRecords({ transactions }))
        return (await store.transactions.get(transaction.txid))?.proof?.height
      }
      expect(await heightAfter(undefined)).toBeUndefined()
      expect(await heightAfter(5)).toBe(5)
      expect(await heightAfter(undefined)).toBe(5)
      expect(await heightAfter(6)).toBe(6)
      expect(await heightAfter(7, undefined)).toBe(7)
      expect(await heightAfter(undefined, 8)).toBe(8)
    })
  })

  describe('a transaction that is read in parts', () => {
    const KiB = 1024

    test.each([100, 256 * KiB - 1, 256 * KiB, 256 * KiB + 1, 512 * KiB])(
      'of %i bytes is whole, with its proof',
      async (length) => {
        const { store } = await openStore()
        const raw = new Uint8Array(randomBytes(length))
        const txid = toHex(reversed(nativeHash256(raw)))
        const proof = { merklePath: text('path'), height: 7, root: 'cd'.repeat(32) }
        await store.record(graphRecords({ transactions: [{ txid, raw, proof }] }))
        const read = await store.transactions.raw(txid)
        expect({ ...read?.proof, merklePath: undefined }).toEqual({ ...proof, merklePath: undefined })
        expect(read?.length).toBe(length)
        const chunks: Uint8Array[] = []
        for await (const { bytes } of read?.chunks() ?? []) chunks.push(bytes)
        expect(Buffer.compare(Buffer.concat(chunks), raw)).toBe(0)
        for await (const { at, bytes } of read?.chunks(length - 1) ?? [])
          expect([at <= length - 1, bytes.at(length - 1 - at)]).toEqual([true, raw.at(-1)])
        expect(await store.transactions.raw('00'.repeat(32))).toBeUndefined()
      },
    )
  })

  describe('content', () => {
    test('over one chunk comes chunk by chunk, and is whole', async () => {
      const { store } = await openStore()
      const bytes = new Uint8Array(randomBytes(600 * 1024))
      const { output, body } = showing(at(1), bytes)
      await store.record(graphRecords({ outputs: [output], contents: [body] }))
      const chunks = await chunksOf(store.content.chunks(body.sha256))
      expect(chunks.map((chunk) => chunk.length)).toEqual([256, 256, 88].map((kib) => kib * 1024))
      expect(hashOf(Buffer.concat(chunks))).toBe(body.sha256)
    })

    test.each([256 * 1024, 512 * 1024])('of exactly %i bytes has no chunk too many', async (length) => {
      const { store } = await openStore()
      const { output, body } = showing(at(1), new Uint8Array(length).fill(3))
      await store.record(graphRecords({ outputs: [output], contents: [body] }))
      const chunks = await chunksOf(store.content.chunks(body.sha256))
      expect(chunks.map((chunk) => chunk.length)).toEqual(new Array(length / (256 * 1024)).fill(256 * 1024))
    })

    test('of no bytes is distinguished from missing content', async () => {
      const { store } = await openStore()
      const { output, body } = showing(at(1), new Uint8Array())
      await store.record(graphRecords({ outputs: [output], contents: [body] }))
      expect(await chunksOf(store.content.chunks(body.sha256))).toEqual([new Uint8Array()])
      expect(await chunksOf(store.content.chunks(hashOf(text('x'))))).toEqual([])
    })

    test('of larger bodies than one statement takes is all there', async () => {
      const { store } = await openStore()
      const shown = [1, 2, 3].map((i) => showing(at(i), new Uint8Array(randomBytes(5 * 1024 * 1024 + i))))
      const [outputs, contents] = [shown.map(({ output }) => output), shown.map(({ body }) => body)]
      await store.record(graphRecords({ outputs, contents }))
      for (const { sha256, bytes } of contents)
        expect(hashOf(Buffer.concat(await chunksOf(store.content.chunks(sha256))))).toBe(hashOf(bytes))
    })

    test('that two outputs show is kept once', async () => {
      const opened = await openStore()
      const [one, two] = [showing(at(1), text('same')), showing(at(2), text('same'), 'text/html')]
      const each = [one, two].map(({ output, body }) => graphRecords({ outputs: [output], contents: [body] }))
      for (const records of each) await opened.store.record(records)
      expect((await opened.rows()).graph_pieces).toHaveLength(1)
      expect((await opened.store.ordinals.output(at(2)))?.content?.contentType).toBe('text/html')
    })

    test('that no output shows is not kept', async () => {
      const opened = await openStore()
      await opened.store.record(graphRecords({ contents: [showing(at(1), text('a')).body] }))
      expect((await opened.rows()).graph_pieces).toEqual([])
    })
  })

  describe('an output', () => {
    test('comes back as it was recorded', async () => {
      const { store } = await openStore()
      const typed = showing(at(1), text('a'), 'text/plain; charset=“ü”\u0000').output
      const outputs: OutputRecord[] = [
        typed,
        { outpoint: at(2, 0xffffffff), satoshis: 2_100_000_000_000_000, previous: at(1, 0xffffffff) },
        { outpoint: at(3), satoshis: 0 },
        { outpoint: at(4), satoshis: 1, unsettled: true },
      ]
      await store.record(graphRecords({ outputs }))
      for (const output of outputs) expect(await store.ordinals.output(output.outpoint)).toEqual(output)
    })

    test('that is the first of its transaction with content is found', async () => {
      const { store } = await openStore()
      const outputs = [{ outpoint: at(1, 0), satoshis: 1 }]
      const shown = [9, 10, 300].map((vout) => showing(at(1, vout), text('a')).output)
      await store.record(graphRecords({ outputs: [...shown.toReversed(), ...outputs] }))
      expect((await store.ordinals.firstContentOutput(txid(1)))?.outpoint).toEqual(at(1, 9))
      expect(await store.ordinals.firstContentOutput(txid(2))).toBeUndefined()
    })
  })

  describe('what an output received', () => {
    const coin = { satoshis: 1, lockingScript: p2pkh(1) }
    /** A spend of three coins of three transactions, of 1, 5 and 1 satoshis. */
    function spending() {
      const chain = new FakeChain()
      const sources = [1, 5, 1].map((satoshis) =>
        chain.spend({ inputs: [], outputs: [{ ...coin, satoshis }] }),
      )
      const inputs = sources.map((transaction) => ({ transaction, vout: 0 }))
      const outputs = [coin, { ...coin, satoshis: 4 }, coin, coin]
      const child = chain.spend({ inputs, outputs })
      const spends = inputs.map((_, i) => ({
        outpoint: { txid: sources[i]?.txid ?? '', vout: 0 },
        spender: child.txid,
      }))
      const unresolved = (vout: number): OutputRecord => ({
        outpoint: { txid: child.txid, vout },
        satoshis: 1,
        unsettled: true,
      })
      const records = graphRecords({
        transactions: [recordOf(child)],
        spends,
        outputs: [0, 2, 3].map(unresolved),
      })
      return { sources, child, records }
    }
    const resolved = (child: FakeTransaction, vout: number, previous?: FakeTransaction): OutputRecord => ({
      outpoint: { txid: child.txid, vout },
      satoshis: 1,
      ...(previous && { previous: { txid: previous.txid, vout: 0 } }),
    })

    test('is resolved as the transactions come, in any order', async () => {
      const { sources, child, records } = spending()
      const events = [records, ...sources.map((each) => graphRecords({ transactions: [recordOf(each)] }))]
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray(events, { minLength: events.length }), async (order) => {
          const { store } = await openStore()
          for (const event of order) await store.record(event)
          expect(await store.ordinals.output({ txid: child.txid, vout: 0 })).toEqual(
            resolved(child, 0, sources[0]),
          )
          expect(await store.ordinals.output({ txid: child.txid, vout: 2 })).toEqual(resolved(child, 2))
          expect(await store.ordinals.output({ txid: child.txid, vout: 3 })).toEqual(
            resolved(child, 3, sources[2]),
          )
          await closeStores()
        }),
        { numRuns: runs(12), endOnFailure: true },
      )
    })

    test('is resolved as far as the values reach', async () => {
      const { sources, child, records } = spending()
      const { store } = await openStore()
      await store.record(records)
      await store.record(graphRecords({ transactions: sources.slice(0, 1) }))
      expect(await store.ordinals.output({ txid: child.txid, vout: 0 })).toEqual(
        resolved(child, 0, sources[0]),
      )
      expect((await store.ordinals.output({ txid: child.txid, vout: 3 }))?.unsettled).toBe(true)
    })

    test('is resolved by being recorded with it, and stays so', async () => {
      const { sources, child, records } = spending()
      const { store } = await openStore()
      const known = resolved(child, 3, sources[2])
      for (const each of [records, graphRecords({ outputs: [known] }), records]) {
        await store.record(each)
      }
      expect(await store.ordinals.output(known.outpoint)).toEqual(known)
    })

    test('is resolved for an evicted output, too: later outputs depend on it', async () => {
      const { sources, child, records } = spending()
      const { store } = await openStore()
      await store.record(records)
      await store.evict({ txid: child.txid, vout: 0 })
      await store.record(graphRecords({ transactions: sources }))
      expect(await store.ordinals.output({ txid: child.txid, vout: 0 })).toEqual(
        resolved(child, 0, sources[0]),
      )
    })
  })

  describe('nodes', () => {
    const chain = new FakeChain()
    const minted = ['a', 'b', 'ab', 'abc', 'ac', 'abcd', 'b0', 'b-'].map((name) => {
      const parent = chain.node(name.slice(0, -1)).outpoint
      return { name, parent, mint: chain.mint(name) }
    })
    const genesis: NodeRecord = { outpoint: { txid: chain.genesis.txid, vout: 0 }, domain: '' }
    /** What the mints say, each by itself. */
    const events = minted.map(({ name, parent, mint }) =>
      graphRecords({
        spends: [{ outpoint: parent, spender: mint.txid }],
        nodes: [
          { outpoint: { txid: mint.txid, vout: 0 }, domain: name.slice(0, -1) },
          { outpoint: { txid: mint.txid, vout: 1 }, domain: name },
        ],
      }),
    )

    test('are live as the chain has them, in whatever order mints came', async () => {
      const all = [graphRecords({ nodes: [genesis] }), ...events]
      const domains = ['', ...minted.map(({ name }) => name)]
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray(all, { minLength: all.length }), async (order) => {
          const { store } = await openStore()
          for (const event of order) await store.record(event)
          for (const domain of domains)
            expect([domain, await store.names.liveNode(domain)]).toEqual([
              domain,
              chain.node(domain).outpoint,
            ])
          const longest: [string, string][] = [
            ['abcdef', 'abcd'],
            ['abcd', 'abcd'],
            ['abd', 'ab'],
            ['acb', 'ac'],
            ['a0', 'a'],
            ['b-', 'b-'],
            ['b--', 'b-'],
            ['b1', 'b'],
            ['zzz', ''],
            ['-', ''],
            ['a'.repeat(255), 'a'],
          ]
          for (const [name, domain] of longest)
            expect([name, await store.names.longestNode(name)]).toEqual([
              name,
              { domain, outpoint: chain.node(domain).outpoint },
            ])
          await closeStores()
        }),
        { numRuns: runs(8), endOnFailure: true },
      )
    })

    test('are at every moment one a domain, when mints come in order', async () => {
      const { store } = await openStore()
      await store.record(graphRecords({ nodes: [genesis] }))
      const again = new FakeChain()
      for (const [i, event] of events.entries()) {
        await store.record(event)
        const name = minted[i]?.name ?? ''
        again.mint(name)
        for (const domain of [name.slice(0, -1), name])
          expect(await store.names.liveNode(domain)).toEqual(again.node(domain).outpoint)
      }
    })

    test('are not spent by what is no mint', async () => {
      const { store } = await openStore()
      await store.record(graphRecords({ nodes: [genesis], spends: [{ ...spend(genesis.outpoint, 9) }] }))
      expect(await store.names.liveNode('')).toEqual(genesis.outpoint)
      expect(await store.names.longestNode('abc')).toEqual(genesis)
    })
  })

  describe('names', () => {
    const names = ['a', 'a-', 'a0', 'aa', 'ab', 'abc', 'b', '0', '-', 'z'].map((name, i) => ({
      name,
      outpoint: at(i, 2),
    }))
    const sorted = ['-', '0', 'a', 'a-', 'a0', 'aa', 'ab', 'abc', 'b', 'z']
    const open = async () => {
      const { store } = await openStore()
      await store.record(graphRecords({ names }))
      return store
    }

    test('have their origin', async () => {
      const store = await open()
      for (const { name, outpoint } of names) expect(await store.names.originOf(name)).toEqual(outpoint)
      expect(await store.names.originOf('abcd')).toBeUndefined()
      expect(await store.names.originOf('A')).toBeUndefined()
    })

    test('come in the order of their bytes', async () => {
      const store = await open()
      const found = async (query: { prefix: string; after?: string; limit: number }) =>
        (await store.names.byPrefix(query)).map(({ name }) => name)
      expect(await found({ prefix: '', limit: 100 })).toEqual(sorted)
      expect(await found({ prefix: 'a', limit: 100 })).toEqual(['a', 'a-', 'a0', 'aa', 'ab', 'abc'])
      expect(await found({ prefix: 'a', limit: 2 })).toEqual(['a', 'a-'])
      expect(await found({ prefix: 'ab', limit: 100 })).toEqual(['ab', 'abc'])
      expect(await found({ prefix: 'q', limit: 100 })).toEqual([])
      expect(await found({ prefix: 'a', after: 'ab', limit: 100 })).toEqual(['abc'])
      expect(await found({ prefix: 'a', after: 'ab0', limit: 100 })).toEqual(['abc'])
      expect(await found({ prefix: 'a', after: 'b', limit: 100 })).toEqual([])
      expect(await found({ prefix: 'b', after: 'a', limit: 100 })).toEqual(['b'])
    })

    test.each([1, 2, 3])('are all passed once, page by page of %i', async (limit) => {
      const store = await open()
      const paged: string[] = []
      for (let after: string | undefined; ; after = paged.at(-1)) {
        const page = await store.names.byPrefix({ prefix: '', limit, ...(after !== undefined && { after }) })
        paged.push(...page.map(({ name }) => name))
        if (page.length < limit) break
      }
      expect(paged).toEqual(sorted)
    })

    test('are picked from a thousand outpoints, each once', async () => {
      const { store } = await openStore()
      const genuine = Array.from({ length: 500 }, (_, i) => ({ name: `n${i}`, outpoint: at(i, 2) }))
      await store.record(graphRecords({ names: genuine }))
      const [first] = genuine
      if (first === undefined) throw new Error('no names')
      const strangers = genuine.map(({ outpoint }) => ({ ...outpoint, vout: 1 }))
      const asked = genuine.flatMap(({ outpoint }, i) => [outpoint, strangers[i] ?? outpoint])
      const found = await store.names.genuineOrigins([...asked, first.outpoint])
      const byText = (a: string, b: string) => (a < b ? -1 : 1)
      expect(found.map(({ outpoint }) => formatOutpoint(outpoint)).sort(byText)).toEqual(
        genuine.map(({ outpoint }) => formatOutpoint(outpoint)).sort(byText),
      )
      expect(found).toContainEqual(first)
    })
  })

  describe('the current output', () => {
    const step = (from: number, to: number) => ({
      outputs: [{ outpoint: at(to), satoshis: 1, previous: at(from) }],
      spends: [spend(at(from), to)],
    })

    test('is the end of all transfers, in whatever order they came', async () => {
      const first = graphRecords({ outputs: [{ outpoint: at(1), satoshis: 1 }] })
      const steps = [first, ...[1, 2, 3, 4].map((from) => graphRecords(step(from, from + 1)))]
      for (const order of [steps, steps.toReversed()]) {
        const { store } = await openStore()
        for (const records of order) await store.record(records)
        for (const from of [1, 3, 5]) expect(await store.ordinals.currentOutput(at(from))).toEqual(at(5))
      }
    })

    test('is the outpoint itself before any transfer', async () => {
      const { store } = await openStore()
      expect(await store.ordinals.currentOutput(at(1, 2))).toEqual(at(1, 2))
    })

    test('is none where the ordinal was burnt, or went out of sight', async () => {
      const { store } = await openStore()
      await store.record(graphRecords(step(1, 2)))
      await store.record(graphRecords({ spends: [spend(at(2), 3)] }))
      expect(await store.ordinals.currentOutput(at(1))).toBeUndefined()
      expect(await store.ordinals.currentOutput(at(2))).toBeUndefined()
    })

    // "Output 2 of a genuine mint always starts a lineage, whatever 1-sat coins funded the mint."
    test('is never the name of another mint, which the ordinal paid for', async () => {
      const { store } = await openStore()
      await store.record(graphRecords(step(1, 2)))
      await store.record(graphRecords({ names: [{ name: 'b', outpoint: at(2) }] }))
      expect(await store.ordinals.currentOutput(at(1))).toBeUndefined()
      expect(await store.ordinals.currentOutput(at(2))).toEqual(at(2))
      await store.record(graphRecords(step(2, 3)))
      expect(await store.ordinals.currentOutput(at(2))).toEqual(at(3))
      expect(await store.ordinals.currentOutput(at(1))).toBeUndefined()
    })
  })

  describe('admissions', () => {
    const admission = (outpoint: Outpoint, score: number, topic = 'tm_ordinals') => ({
      topic,
      outpoint,
      score,
    })

    test('are found by outpoint and by transaction', async () => {
      const { store } = await openStore()
      const both = [admission(at(1, 2), 5, 'tm_names'), admission(at(1, 2), 6)]
      const first = admission(at(1, 0), 5, 'tm_names')
      await store.record(graphRecords({ admissions: [...both, first, admission(at(2), 7)] }))
      expect(await store.admissions.of(at(1, 2))).toEqual(both)
      expect(await store.admissions.ofTransaction(txid(1))).toEqual([first, ...both])
    })

    test('keep the score of the first record', async () => {
      const { store } = await openStore()
      for (const score of [5, 9]) await store.record(graphRecords({ admissions: [admission(at(1), score)] }))
      expect(await store.admissions.of(at(1))).toEqual([admission(at(1), 5)])
    })

    test('of a topic that are unspent come by score', async () => {
      const { store } = await openStore()
      const now = 1_800_000_000_000
      const admissions = [3, 1, 2, 4].map((i) => admission(at(i), now + i))
      const others = [admission(at(3), 1, 'tm_names'), admission(at(9), now + 3)]
      await store.record(graphRecords({ admissions: [...admissions, ...others], spends: [spend(at(2), 5)] }))
      const found = async (query: { since: number; limit?: number }) =>
        (await store.admissions.unspentOfTopic({ topic: 'tm_ordinals', ...query })).map(
          ({ outpoint }) => outpoint,
        )
      expect(await found({ since: 0 })).toEqual([at(1), at(3), at(9), at(4)])
      expect(await found({ since: now + 3 })).toEqual([at(3), at(9), at(4)])
      expect(await found({ since: now + 5 })).toEqual([])
      expect(await found({ since: 0, limit: 2 })).toEqual([at(1), at(3)])
    })

    test('of one index come though they are spent', async () => {
      const { store } = await openStore()
      const spent = [0, 2].map((vout) => ({ ...at(1), vout }))
      const admissions = spent.map((outpoint) => admission(outpoint, 5, 'tm_names'))
      await store.record(
        graphRecords({ admissions, spends: spent.map((outpoint) => ({ outpoint, spender: txid(7) })) }),
      )
      const query = { topic: 'tm_names', since: 0 }
      expect(await store.admissions.unspentOfTopic(query)).toEqual([])
      expect(await store.admissions.unspentOfTopic({ ...query, always: 2 })).toEqual(admissions.slice(1))
    })

    test('are of topics whose names differ in case alone', async () => {
      const { store } = await openStore()
      const admissions = ['tm_names', 'TM_NAMES'].map((topic, score) => ({ topic, outpoint: at(1), score }))
      for (const admission of admissions) await store.record(graphRecords({ admissions: [admission] }))
      expect(await store.admissions.of(at(1))).toEqual(admissions.reverse())
      expect(await store.admissions.unspentOfTopic({ topic: 'tm_names', since: 0 })).toHaveLength(1)
    })

    test('make a transaction count as applied for their topic alone', async () => {
      const { store } = await openStore()
      await store.record(graphRecords({ applied: [{ topic: 'tm_names', txid: txid(1) }] }))
      expect(await store.admissions.isApplied('tm_names', txid(1))).toBe(true)
      expect(await store.admissions.isApplied('tm_ordinals', txid(1))).toBe(false)
      expect(await store.admissions.isApplied('tm_names', txid(2))).toBe(false)
    })
  })

  describe('spenders', () => {
    test('count once for each outpoint: those that came first', async () => {
      const { store } = await openStore()
      await store.record(graphRecords({ spends: [spend(at(1), 3)] }))
      await store.record(graphRecords({ spends: [spend(at(1), 2), spend(at(1, 1), 4)] }))
      expect(await store.transactions.spenderOf(at(1))).toBe(txid(3))
      expect(await store.transactions.spenderOf(at(1, 1))).toBe(txid(4))
      expect(await store.transactions.reasonAgainst(txid(2))).toMatchObject({ txid: txid(3) })
      expect(await store.transactions.reasonAgainst(txid(3))).toBeUndefined()
    })

    test('are distinguished from conflicting transactions among more outpoints than one statement takes', async () => {
      const { store } = await openStore()
      await store.record(graphRecords({ spends: [spend(at(1, 999), 2)] }))
      const outpoints = Array.from({ length: 1000 }, (_, vout) => at(1, vout))
      await store.record(graphRecords({ spends: outpoints.map((outpoint) => spend(outpoint, 3)) }))
      expect(await store.transactions.reasonAgainst(txid(3))).toMatchObject({ txid: txid(2) })
      expect(await store.transactions.spenderOf(at(1))).toBeUndefined()
    })
  })

  describe('a sync', () => {
    test('goes on where it was, for each host and topic', async () => {
      const { store } = await openStore()
      const host = 'https://a.example'
      await store.interactions.setLast(host, 'tm_names', 1_800_000_000_000)
      await store.interactions.setLast(host, 'tm_ordinals', 5)
      await store.interactions.setLast(host, 'tm_ordinals', 7)
      expect(await store.interactions.last(host, 'tm_names')).toBe(1_800_000_000_000)
      expect(await store.interactions.last(host, 'tm_ordinals')).toBe(7)
      expect(await store.interactions.last('https://b.example', 'tm_ordinals')).toBe(0)
    })
  })
})
