import { vi } from 'vitest'
import { Sql } from '../../../backend/src/facts/connection.js'
import { transactionFact } from '../../../backend/src/facts/log.js'
import { register, registerFact } from '../../../backend/src/facts/registers.js'
import { State } from '../../../backend/src/facts/state.js'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { StoreUnavailableError, UnstableReadError } from '../../../backend/src/graph/errors.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { CHUNK_BYTES } from '../../../backend/src/graph/records.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import type { Writer } from '../../../backend/src/writer/writer.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { FactFiles } from '../../support/storage/fact-files.js'
import { withFile } from '../../support/storage/stores.js'

const DAMAGED = expect.objectContaining({ code: 'DAMAGED' })
const chain = new FakeChain()
let files: FactFiles
let reader: Reader
let store: FactStore

beforeEach(() => {
  files = new FactFiles(chain.deployment)
  reader = new Reader(files)
  store = new FactStore({ reader, writer: {} as Writer })
})
afterEach(() => {
  reader.close()
  files.close()
})

const bytes = (length: number): Uint8Array =>
  new Uint8Array(length).map((_, at) => at * 7 + (at >> 8) + (at >> 18))
const bodyOf = (length: number) => {
  const body = bytes(length)
  return { body, hash: sha256(body).toString('hex'), note: chain.inscribe({ contentType: 'a/b', body }) }
}
/** A transaction that spends an output of another one. */
const moved = (transaction: FakeTransaction, seed = 2): FakeTransaction =>
  chain.spend({ inputs: [transaction], outputs: [p2pkh(seed)] })

/** Changes a byte, so many before the end. */
function flipped(before: number): (bytes: Buffer) => Buffer {
  return (bytes) => {
    const changed = Buffer.from(bytes)
    const at = Math.max(bytes.length - before, 0)
    changed.writeUInt8(bytes.readUInt8(at) ^ 1, at)
    return changed
  }
}

async function all<Item>(items: Iterable<Item> | AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

test('an answer is one snapshot, and the next one has what was written meanwhile', async () => {
  const [first, second] = [chain.inscribe({ body: utf8('1') }), chain.inscribe({ body: utf8('2') })]
  files.add(first)
  const count = (sql: Sql): number => sql.get('select count(*) as count from tx where seq is not null')?.count
  const seen = reader.answer((sql) => {
    const before = count(sql)
    files.add(second)
    return [before, count(sql)]
  })
  expect([seen, reader.answer(count)]).toEqual([[1, 1], 2])
})

describe('an answer of several reads', () => {
  const [one, two] = [chain.inscribe({ body: utf8('one') }), chain.inscribe({ body: utf8('two') })]

  test('is one snapshot', async () => {
    files.add(one)
    const has = (): boolean[] => [one, two].map(({ txid }) => store.transactions.has(txid))
    const answer = store.consistent(() => {
      const before = has()
      files.add(two)
      return [before, has(), store.consistent(has)]
    })
    expect(answer).toEqual([
      [true, false],
      [true, false],
      [true, false],
    ])
    expect(has()).toEqual([true, true])
  })

  test('ends its snapshot if it fails', () => {
    const broken = (): never => {
      throw new Error('the disk is gone')
    }
    expect(() => store.consistent(broken)).toThrow('the disk is gone')
    files.add(one)
    expect(store.transactions.has(one.txid)).toBe(true)
  })
})

describe('a long answer', () => {
  test('that takes longer holds no snapshot, and is read again after a reorganisation', async () => {
    const coin = chain.spend({ outputs: [p2pkh(1)] })
    const [first, second] = [moved(coin, 1), moved(coin, 2)]
    const spender = () => store.transactions.spenderOf({ txid: coin.txid, vout: 0 })
    for (const each of [coin, first, second]) files.add(each)
    let reads = 0
    const answer = await store.acrossSnapshots(async () => {
      reads++
      const before = spender()
      if (reads === 1) files.add(second, 7)
      await new Promise(setImmediate)
      return [before, spender()]
    })
    expect([answer, reads]).toEqual([[second.txid, second.txid], 2])
  })

  /** Writes that a transaction counts instead of one that counted before. */
  function reorganise(): void {
    const coin = chain.spend({ outputs: [p2pkh(3)] })
    const [first, second] = [moved(coin, 1), moved(coin, 2)]
    for (const each of [coin, first, second]) files.add(each)
    files.add(second, 7)
  }

  test('that is overtaken by reorganisations without end is given up', async () => {
    let reads = 0
    const endless = async () => {
      reads++
      await new Promise(setImmediate)
      reorganise()
    }
    await expect(store.acrossSnapshots(endless)).rejects.toThrow(UnstableReadError)
    expect(reads).toBeGreaterThan(1)
    expect(reads).toBeLessThan(100)
  })

  test('fails with an error of its state, and not with one of a mix of two states', async () => {
    let reads = 0
    const answer = await store.acrossSnapshots(async () => {
      await new Promise(setImmediate)
      if (++reads === 3) return 'an answer'
      reorganise()
      throw new Error('what is read now was never there')
    })
    expect(answer).toBe('an answer')
    const broken = async () => {
      await new Promise(setImmediate)
      throw new Error('the disk is gone')
    }
    await expect(store.acrossSnapshots(broken)).rejects.toThrow('the disk is gone')
  })

  test('is not tried again where the store does not respond', async () => {
    let reads = 0
    const away = async () => {
      reads++
      await new Promise(setImmediate)
      reorganise()
      throw new StoreUnavailableError(new Error('no answer'))
    }
    await expect(store.acrossSnapshots(away)).rejects.toThrow(StoreUnavailableError)
    expect(reads).toBe(1)
  })
})

test('readers write nothing', () => {
  expect(() => reader.answer((sql) => sql.run('delete from tx'))).toThrow(/readonly/)
})

describe.each([
  ['no bytes', 0],
  ['a few bytes', 9],
  ['one chunk', CHUNK_BYTES],
  ['several chunks', 2 * CHUNK_BYTES + 5],
])('a body of %s', (_, length) => {
  test('is read by ranges out of its transaction', async () => {
    const { body, hash, note } = bodyOf(length)
    files.add(note)
    const read = async (range?: { from: number; length: number }): Promise<Buffer> =>
      Buffer.concat(await all(store.content.chunks(hash, range)))
    expect((await read()).equals(Buffer.from(body))).toBe(true)
    for (const from of [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, length - 1, length, length + 1])
      for (const size of [1, 7, CHUNK_BYTES, 2 * CHUNK_BYTES])
        if (from >= 0) {
          const part = Buffer.from(body.subarray(from, from + size))
          expect((await read({ from, length: size })).equals(part)).toBe(true)
        }
    const chunks: Buffer[] = []
    for (let position = 0; ; position++) {
      const chunk = await store.content.chunk(hash, position)
      if (chunk === undefined) break
      chunks.push(Buffer.from(chunk))
    }
    expect(chunks).toHaveLength(Math.max(Math.ceil(length / CHUNK_BYTES), 1))
    expect(Buffer.concat(chunks).equals(Buffer.from(body))).toBe(true)
  })

  test('and its transaction are refused when their bytes are not those that were stored', async () => {
    const { hash, note } = bodyOf(length)
    files.add(note)
    const raw = Buffer.from((await store.transactions.get(note.txid))?.raw ?? [])
    expect(raw.equals(Buffer.from(note.raw))).toBe(true)
    files.damage(flipped(60))
    expect(() => store.transactions.get(note.txid)).toThrow(DAMAGED)
    if (length < CHUNK_BYTES) return
    const last = Math.ceil(length / CHUNK_BYTES) - 1
    await expect(async () => await store.content.chunk(hash, last)).rejects.toEqual(DAMAGED)
    files.loseChunks()
    expect(() => store.transactions.get(note.txid)).toThrow(DAMAGED)
    await expect(async () => await store.content.chunk(hash, last)).rejects.toEqual(DAMAGED)
  })
})

test('a short body is held against its own hash', async () => {
  const { hash, note } = bodyOf(100)
  files.add(note)
  files.damage(flipped(60))
  await expect(async () => await store.content.chunk(hash, 0)).rejects.toEqual(DAMAGED)
})

test('a long transaction is read from any of its chunks on', async () => {
  const { note } = bodyOf(3 * CHUNK_BYTES)
  files.add(note, 7)
  const raw = await store.transactions.raw(note.txid)
  if (raw === undefined) throw new Error('it is stored')
  expect([raw.length, raw.proof?.height]).toEqual([note.raw.length, 7])
  const whole = Buffer.concat([...raw.chunks()].map((each) => each.bytes))
  expect(whole.equals(Buffer.from(note.raw))).toBe(true)
  const [first] = raw.chunks(2 * CHUNK_BYTES + 1)
  expect(first?.at).toBe(2 * CHUNK_BYTES)
})

test('the genesis of a log is read before there is an index', async () => {
  expect(await store.settings.get('base')).toBe('1800000000000')
  expect(await store.settings.get('genesis')).toBeUndefined()
})

describe('what stands beside the facts', () => {
  let sql: Sql
  let state: State
  beforeEach(() => {
    sql = new Sql(files.log)
    state = new State(sql)
  })
  afterEach(() => sql.close())

  const txid = (number: number): string => number.toString(16).padStart(64, 'b')

  test('settings', async () => {
    expect(await store.settings.get('checked_tip')).toBeUndefined()
    state.set('checked_tip', '7')
    expect(await store.settings.get('checked_tip')).toBe('7')
  })

  test('submissions that are not final, the shortest locks first', async () => {
    const held = [5, 3, 9].map((height, at) => ({
      ...{ txid: txid(at), beef: utf8(`BEEF ${at}`), lock: { height, time: 0 } },
    }))
    for (const each of held) state.hold(each, { maxCount: 10 })
    const until = async (height: number): Promise<number[]> =>
      (await store.held.heldUntil({ height, time: 1 }, 10)).map(({ lock }) => lock.height)
    expect([await until(2), await until(5), await until(10)]).toEqual([[], [3, 5], [3, 5, 9]])
    expect((await store.held.held(txid(0)))?.beef).toEqual(Buffer.from('BEEF 0'))
    state.release(txid(0))
    expect(await store.held.held(txid(0))).toBeUndefined()
  })

  test('how far the search for what is missing is, and whose turn it is', async () => {
    const [one, two] = [bodyOf(3).note, bodyOf(4).note]
    const further = chain.move(moved(one), 0, inscriptionScript({ body: utf8('further') }))
    for (const each of [one, further, two]) files.add(each)
    const { ancestors } = store
    const due = async (now = 100): Promise<string[]> =>
      (await ancestors.due({ now, limit: 10 })).map(({ outpoint }) => outpoint.txid)
    expect(await ancestors.nextDue()).toBe(0)
    expect((await due()).sort()).toEqual([one.txid, further.txid, two.txid].sort())
    const first = await ancestors.due({ now: 0, limit: 1 })
    expect(first.map(({ outpoint }) => outpoint.txid)).toEqual([one.txid, two.txid])
    expect(await ancestors.count(10)).toEqual({ waiting: 3, holes: 0 })
    const attempt = { due: 50, place: 1, tries: 2, transactions: 3, bytes: 4 }
    const at = (transaction: FakeTransaction) => ({ txid: transaction.txid, vout: 0 })
    state.postpone([at(one)], { ...attempt, hole: false })
    state.postpone([at(two)], { ...attempt, hole: true })
    state.postpone([at(further)], { ...attempt, due: 70, hole: false })
    expect([await due(49), await due(50), await due(70)].map((each) => each.length)).toEqual([0, 2, 3])
    expect([await ancestors.nextDue(), await ancestors.count(1)]).toEqual([50, { waiting: 1, holes: 1 }])
    expect((await ancestors.due({ now: 50, limit: 10 }))[0]).toMatchObject({
      ...{ outpoint: at(one), hole: false, tries: 2, fetched: { transactions: 3, bytes: 4 } },
    })
    expect([await ancestors.isWaiting(at(one)), await ancestors.isWaiting(at(two))]).toEqual([true, false])
    // The entry stands for everything behind its output.
    const behind = moved(further, 9)
    files.add(behind)
    expect(await ancestors.isWaiting(at(behind))).toBe(true)
    expect(await ancestors.isWaiting({ txid: txid(5), vout: 0 })).toBe(false)
  })
})

test('an ordinal without numbers is followed from coin to coin, over many pages', async () => {
  const lost = chain.spend({ outputs: [inscriptionScript({ contentType: 'a/b', body: utf8('lost') })] })
  const steps = [lost]
  for (let at = 0; at < 1010; at++) steps.push(moved(steps.at(-1) ?? lost, at))
  files.insert(...steps.map((each) => transactionFact(each)))
  const last = steps.at(-1) ?? lost
  expect(await store.ordinals.at({ txid: lost.txid, vout: 0 }, 0)).toBeUndefined()
  const current = await store.ordinals.currentOutput({ txid: lost.txid, vout: 0 })
  expect(current).toEqual({ txid: last.txid, vout: 0 })
})

test('a store that nothing can be written to any more does not answer as a healthy one', async () => {
  await expect(store.ping()).resolves.toBeUndefined()
  const failure = new Error('the thread has ended')
  const ended = new FactStore({ reader, writer: { failure } as Writer })
  await expect(ended.ping()).rejects.toBe(failure)
})

test('what is blocked while lists are read counts for whatever is read next', () => {
  const commits = { value: 1 }
  const counting = new Reader(files, { commits })
  const { served } = new FactStore({ reader: counting, writer: {} as Writer })
  const subject = { kind: 'name', value: 'a' } as const
  counting.answer((sql) => {
    expect(sql.all("select * from register where subject like 'block %'")).toEqual([])
    files.insert(registerFact(register.block(subject), 1, { blocked: true, reason: 'a test', since: 1 }))
    commits.value++
    expect(served.guard.isOpen).toBe(true)
  })
  expect(() => served.names.originOf('a')).toThrow(BlockedError)
  counting.close()
})

test('reads of a turn of the event loop share a snapshot until something is committed', async () => {
  const commits = { value: 1 }
  const counting = new Reader(files, { commits })
  const { note } = bodyOf(10)
  const begun = vi.spyOn(Sql.prototype, 'exec')
  const snapshots = (): number => begun.mock.calls.filter(([sql]) => sql === 'begin').length
  expect([counting.count('transactions'), counting.count('transactions'), snapshots()]).toEqual([0, 0, 1])

  files.add(note)
  begun.mockClear()
  expect(counting.count('transactions')).toBe(0)
  commits.value++
  expect([counting.count('transactions'), snapshots()]).toEqual([1, 1])

  await new Promise(setImmediate)
  expect([counting.count('transactions'), snapshots()]).toEqual([1, 2])
  begun.mockRestore()
  counting.close()
})

test('no snapshot is held for longer than a turn: a writer may empty the file that it writes first', async () => {
  const counting = new Reader(files, { commits: { value: 1 } })
  const { served } = new FactStore({ reader: counting, writer: {} as Writer })
  const { note } = bodyOf(10)
  expect(served.transactions.has(note.txid)).toBe(false)
  files.add(note)
  const checkpoint = 'pragma wal_checkpoint(truncate)'
  const isHeld = (): unknown =>
    withFile(files.index, (sql) => {
      sql.exec('pragma busy_timeout = 20')
      return sql.get(checkpoint)?.busy
    })
  expect(isHeld()).toBe(1)
  await new Promise(setImmediate)
  expect(isHeld()).toBe(0)
  counting.close()
})
