import { randomBytes } from 'node:crypto'
import { bodyFact, FACT } from '../../../backend/src/facts/log.js'
import { readRegisterFact, registerFact } from '../../../backend/src/facts/registers.js'
import {
  CHANGE,
  type LogRow,
  type NewRow,
  type Place,
  type SharedLog,
  START,
} from '../../../backend/src/facts/shared-log.js'
import { CHUNK_BYTES } from '../../../backend/src/graph/records.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { onEachSharedLog } from '../../support/facts/shared-logs.js'

const MUCH = { limit: 1000, maxBytes: 1e9 }
const PATTERN = Uint8Array.from({ length: 65_536 }, (_, at) => (at * 7 + (at >> 8)) & 0xff)
/** Others for each number. */
const bytes = (length: number, of = 0): Uint8Array =>
  new Uint8Array(Buffer.alloc(length, PATTERN.subarray(of)))
const fact = (text: string): NewRow => bodyFact(utf8(text))
const texts = (rows: readonly LogRow[]): string[] =>
  rows.map(({ body }) => Buffer.from(body ?? []).toString())

async function insert(log: SharedLog, first: number, rows: NewRow[], id = randomBytes(8)): Promise<boolean> {
  return await log.insert({ first, id, at: 1_700_000_000_000, rows })
}

/** Inserts after whatever is there. */
async function add(log: SharedLog, ...rows: NewRow[]): Promise<void> {
  expect(await insert(log, (await everything(log)).length + 1, rows)).toBe(true)
}

/** All rows, as one reads them who knows none, a few at a time. */
async function everything(log: SharedLog, page = MUCH): Promise<LogRow[]> {
  const found: LogRow[] = []
  for (let place: Place = START; ; ) {
    const rows = await log.after(place, page)
    found.push(...rows)
    place = rows.at(-1) ?? place
    if (rows.length === 0) break
  }
  expect(found.map(({ seq }) => seq)).toEqual(found.map((_, index) => index + 1))
  return found
}

onEachSharedLog('a log', (logs) => {
  test('has an identity that stays, whoever opens it first', async () => {
    const log = await logs.create()
    const opened = await Promise.all([log.open(), log.open(), log.open()])
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1)
    const other = await (await logs.create()).open()
    expect(other.id).not.toBe(opened[0]?.id)
    for (const each of [...opened, other]) await each.close()
  })

  test('has facts in their places, and finds them by their keys', async () => {
    const log = await (await logs.create()).open()
    const [one, two, empty] = [
      fact('one'),
      fact('two'),
      { kind: CHANGE, key: utf8('k'), body: bytes(0) } as const,
    ]
    expect(await log.after(START, MUCH)).toEqual([])
    expect(await insert(log, 1, [one])).toBe(true)
    expect(await insert(log, 2, [two, empty])).toBe(true)
    const rows = await everything(log)
    expect(texts(rows)).toEqual(['one', 'two', ''])
    expect(rows.map(({ kind, first, at }) => [kind, first, at])).toEqual([
      [FACT.body, 1, 1_700_000_000_000],
      [FACT.body, 2, 1_700_000_000_000],
      [CHANGE, 2, 1_700_000_000_000],
    ])
    expect(Buffer.from(rows[1]?.key ?? []).equals(two.key)).toBe(true)
    expect(await log.get(FACT.body, two.key)).toMatchObject({ seq: 2 })
    expect(await log.get(FACT.header, two.key)).toBeUndefined()
    expect(await log.get(FACT.body, utf8('k'))).toBeUndefined()
    await log.close()
  })

  test('takes a batch after the last place or not at all, and the same one once', async () => {
    const log = await (await logs.create()).open()
    const [one, other] = [randomBytes(8), randomBytes(8)]
    expect(await insert(log, 1, [fact('a'), fact('b')], one)).toBe(true)
    expect(await insert(log, 1, [fact('c'), fact('d'), fact('e')], other)).toBe(false)
    // The answer to the first try was lost.
    expect(await insert(log, 1, [fact('a'), fact('b')], one)).toBe(true)
    expect(texts(await everything(log))).toEqual(['a', 'b'])
    await log.close()
  })

  test('gives pages that are bounded by count and by bytes, and hold at least one row', async () => {
    const log = await (await logs.create()).open()
    for (const length of [1000, 2000, 10, 20]) await add(log, bodyFact(bytes(length)))
    const lengths = (rows: readonly LogRow[]): (number | undefined)[] => rows.map(({ body }) => body?.length)
    for (const page of [
      { limit: 1, maxBytes: 1e9 },
      { limit: 100, maxBytes: 1 },
      { limit: 2, maxBytes: 30 },
    ])
      expect(lengths(await everything(log, page))).toEqual([1000, 2000, 10, 20])
    expect((await log.after(START, { limit: 100, maxBytes: 1 })).length).toBe(1)
    await log.close()
  })

  test('orders the batches of three writers without a gap, each as a whole, and each decided by all before it', async () => {
    const log = await logs.create()
    const writers = await Promise.all([log.open(), log.open(), log.open()])
    const COUNT = 12
    let refused = 0
    const write = async (writer: SharedLog, name: number): Promise<void> => {
      let place: Place = START
      let n = 0
      for (let done = 0; done < COUNT; ) {
        const rows = await writer.after(place, MUCH)
        place = rows.at(-1) ?? place
        for (const row of rows) if (row.kind === FACT.register) n = readRegisterFact(row as never).n
        const batch = [registerFact('counter', n + 1, `${name}`), fact(`${name} ${done}`)]
        if (await insert(writer, place.seq + 1, batch)) done++
        else refused++
      }
    }
    await Promise.all(writers.map(write))
    const rows = await everything(writers[0] as SharedLog)
    const registers = rows
      .filter(({ kind }) => kind === FACT.register)
      .map((row) => readRegisterFact(row as never))
    expect(registers.map(({ n }) => n)).toEqual(Array.from({ length: 3 * COUNT }, (_, index) => index + 1))
    for (const [index, { value }] of registers.entries())
      expect(texts(rows)[2 * index + 1]?.startsWith(`${value} `)).toBe(true)
    expect(rows.every(({ seq, first }) => first === seq - ((seq - 1) % 2))).toBe(true)
    expect(refused).toBeGreaterThan(0)
    for (const each of writers) await each.close()
  })

  test('has bodies of any length, alone or many in one batch', async () => {
    const log = await (await logs.create()).open()
    const lengths = [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 5, 9 * 1024 * 1024]
    const many = Array.from({ length: 40 }, (_, index) => 200_000 + index)
    await add(log, ...lengths.map((length) => bodyFact(bytes(length))))
    await add(log, ...many.map((length) => bodyFact(bytes(length, 1))))
    const rows = await everything(log)
    expect(rows.map(({ body }) => body?.length)).toEqual([...lengths, ...many])
    for (const { key, body } of rows)
      expect(Buffer.from(bodyFact(body ?? bytes(0)).key).equals(key)).toBe(true)
    const long = await log.get(FACT.body, bodyFact(bytes(3 * CHUNK_BYTES + 5)).key)
    expect(long?.body?.length).toBe(3 * CHUNK_BYTES + 5)
    await log.close()
  })

  test('has batches of many short rows, which are more than one statement takes', async () => {
    const log = await (await logs.create()).open()
    const rows = Array.from({ length: 5000 }, (_, at) => ({ ...fact(`${at}`), body: bytes(900, at) }))
    expect(await insert(log, 1, rows)).toBe(true)
    const found = await everything(log, { limit: 10_000, maxBytes: 1e9 })
    expect(found.every(({ body }, at) => Buffer.from(body ?? []).equals(rows[at]?.body ?? bytes(0)))).toBe(
      true,
    )
    expect(found).toHaveLength(rows.length)
  })

  test('forgets the bodies of changes that are discarded, and keeps their places', async () => {
    const log = await (await logs.create()).open()
    await add(log, { kind: CHANGE, key: utf8('pending a 1'), body: bytes(1000) }, fact('a'))
    await add(log, { kind: CHANGE, key: utf8('pending b 1'), body: bytes(1000) })
    await log.discard([1, 9])
    expect((await everything(log)).map(({ body }) => body?.length)).toEqual([undefined, 1, 1000])
    await log.close()
  })

  test('has notes beside it, in the order of their names, which are written over and deleted', async () => {
    const tested = await logs.create()
    const [one, other] = [await tested.open(), await tested.open()]
    expect(await one.notes('', 10)).toEqual([])
    await one.note([
      { name: 'b 2', value: 'é' },
      { name: 'b 1', value: '1' },
      { name: 'a', value: '' },
      { name: 'B', value: 'x' },
    ])
    await other.note([
      { name: 'b 1', value: '2' },
      { name: 'a', value: undefined },
      { name: 'none', value: undefined },
    ])
    const all = [
      { name: 'B', value: 'x' },
      { name: 'b 1', value: '2' },
      { name: 'b 2', value: 'é' },
    ]
    expect(await one.notes('', 10)).toEqual(all)
    expect(await one.notes('', 2)).toEqual(all.slice(0, 2))
    expect(await one.notes('b 1', 10)).toEqual(all.slice(2))
    expect(await one.last()).toBe(0)
    await add(one, fact('a'), fact('b'))
    expect(await other.last()).toBe(2)
    for (const each of [one, other]) await each.close()
  })

  test('replaces a note for one of those that try at once', async () => {
    const tested = await logs.create()
    const all = await Promise.all([tested.open(), tested.open(), tested.open()])
    let from: string | undefined
    for (let round = 0; round < 5; round++) {
      const tries = all.map((log, at) => log.replaceNote('job', { from, to: `${round} ${at}` }))
      const taken = await Promise.all(tries)
      expect(taken.filter(Boolean)).toHaveLength(1)
      from = `${round} ${taken.indexOf(true)}`
      expect(await all[0]?.notes('', 10)).toEqual([{ name: 'job', value: from }])
    }
    expect(await all[0]?.replaceNote('job', { from: undefined, to: 'x' })).toBe(false)
    expect(await all[0]?.replaceNote('job', { from: 'other', to: 'x' })).toBe(false)
    for (const each of all) await each.close()
  })

  test('overwrites and forgets bodies, wherever they stand, and keeps their places', async () => {
    const log = await (await logs.create()).open()
    const lengths = [0, 10, CHUNK_BYTES, 2 * CHUNK_BYTES + 5]
    await add(log, ...lengths.map((length) => bodyFact(bytes(length))), fact('a'))
    const rows = await everything(log)
    for (const row of rows.slice(1, 4)) await log.overwrite(row, bytes(row.body?.length ?? 0, 3))
    const after = await everything(log)
    expect(after.map(({ body }) => Buffer.from(body ?? []))).toEqual(
      [...lengths.map((length) => bytes(length, length === 0 ? 0 : 3)), utf8('a')].map((each) =>
        Buffer.from(each),
      ),
    )
    await log.discard([2, 4])
    expect((await everything(log)).map(({ body }) => body?.length)).toEqual([
      0,
      undefined,
      CHUNK_BYTES,
      undefined,
      1,
    ])
    expect(await log.last()).toBe(5)
    // It may come again, and stays then.
    await add(log, bodyFact(bytes(10)))
    await log.discard([2])
    expect((await log.get(FACT.body, bodyFact(bytes(10)).key))?.seq).toBe(6)
    await log.close()
  })

  test('has a time for each row that was copied from another one', async () => {
    const log = await (await logs.create()).open()
    await add(log, { ...fact('a'), at: 5 }, fact('b'))
    expect((await everything(log)).map(({ at }) => at)).toEqual([5, 1_700_000_000_000])
    await log.close()
  })

  test('says that it is another one where an earlier backup was restored', async () => {
    const tested = await logs.create()
    const log = await tested.open()
    for (const text of ['a', 'b', 'c']) await add(log, fact(text))
    const rows = await everything(log)
    await tested.restore(2)
    const at = (index: number): Promise<LogRow[]> => log.after(rows[index] ?? START, MUCH)
    expect(await at(1)).toEqual([])
    await expect(at(2)).rejects.toMatchObject({ code: 'OTHER_LOG' })
    // Even with the same fact in that place: somebody else inserted it.
    expect(await insert(log, 3, [fact('c')])).toBe(true)
    await expect(at(2)).rejects.toMatchObject({ code: 'OTHER_LOG' })
    expect(texts(await at(1))).toEqual(['c'])
    await log.close()
  })
})

onEachSharedLog('a log on a server', (logs) => {
  const { throughProxy } = logs
  if (throughProxy === undefined) {
    test.skip('there is none', () => {})
    return
  }

  test.each(['changed', 'missing'] as const)('finds a chunk that is %s', async (how) => {
    const tested = await logs.create()
    const log = await tested.open()
    await add(log, bodyFact(bytes(2 * CHUNK_BYTES)))
    await tested.damageChunks(how)
    await expect(log.after(START, MUCH)).rejects.toMatchObject({ code: 'DAMAGED' })
    await log.close()
  })

  test('reports chunks that are damaged, if it is asked to, and goes on', async () => {
    const tested = await logs.create()
    const log = await tested.open()
    await add(log, fact('a'), bodyFact(bytes(2 * CHUNK_BYTES)), fact('b'))
    await tested.damageChunks('changed')
    const damaged: number[] = []
    const rows = await log.after(START, { ...MUCH, onDamage: ({ seq }) => damaged.push(seq) })
    expect([damaged, rows.map(({ body }) => body?.length)]).toEqual([[2], [1, undefined, 1]])
    await log.close()
  })

  test('is opened by nobody while something is copied into it, and by no other copy', async () => {
    const tested = await logs.create()
    await expect(tested.open({ exists: true })).rejects.toThrow('no log')
    const log = await tested.open({ copyOf: 'a' })
    await expect(tested.open()).rejects.toThrow('part of a copy')
    await expect(tested.open({ copyOf: 'b' })).rejects.toThrow('part of another copy')
    await add(log, fact('a'))
    const again = await tested.open({ copyOf: 'a' })
    expect(again.id).toBe(log.id)
    await again.complete()
    await expect(tested.open({ copyOf: 'a' })).rejects.toThrow('holds a complete copy of that log already')
    await expect(tested.open({ copyOf: 'b' })).rejects.toThrow('a log already')
    const opened = await tested.open({ exists: true })
    expect(texts(await everything(opened))).toEqual(['a'])
    for (const each of [log, again, opened]) await each.close()
  })

  test('keeps no chunks of batches that did not come to be', async () => {
    const tested = await logs.create()
    const log = await tested.open()
    await add(log, bodyFact(bytes(3 * CHUNK_BYTES)), bodyFact(bytes(2 * CHUNK_BYTES)))
    expect(await tested.chunks?.()).toBe(5)
    expect(await insert(log, 1, [bodyFact(bytes(4 * CHUNK_BYTES, 1))])).toBe(false)
    expect(await tested.chunks?.()).toBe(5)
    for (const first of [1, 2, 3]) await tested.leaveChunk?.(first)
    await log.collect({ from: 0, to: 2 })
    // What is to begin at place 3 may yet come.
    expect(await tested.chunks?.()).toBe(6)
    await add(log, bodyFact(bytes(2 * CHUNK_BYTES, 2)))
    await log.collect({ from: 2, to: 3 })
    expect(await tested.chunks?.()).toBe(7)
    expect((await everything(log)).map(({ body }) => body?.length)).toEqual(
      [3, 2, 2].map((count) => count * CHUNK_BYTES),
    )
    await log.close()
  })

  test('cannot be reached for a while, and goes on', async () => {
    const { proxy, open } = await throughProxy()
    const log = await open({ patience: 3000 })
    await add(log, fact('a'))
    proxy.cut()
    await expect(log.after(START, MUCH)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(insert(log, 2, [fact('b')])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    proxy.mend()
    await add(log, fact('b'))
    expect(texts(await everything(log))).toEqual(['a', 'b'])
    await log.close()
    await proxy.stop()
  })

  test('is not changed by a batch that arrives after its writer gave up, and another one wrote', async () => {
    const { log: tested, proxy, open } = await throughProxy()
    const [late, other] = [await open({ patience: 500 }), await tested.open()]
    await add(late, fact('a'))
    proxy.stall({ newOnes: true })
    await expect(insert(late, 2, [fact('late'), fact('later')])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    await add(other, fact('b'))
    proxy.mend()
    const again = await open()
    expect(texts(await everything(again))).toEqual(['a', 'b'])
    await add(other, fact('c'))
    expect(texts(await everything(other))).toEqual(['a', 'b', 'c'])
    await Promise.all([late.close(), other.close(), again.close()])
    await proxy.stop()
  })
})
