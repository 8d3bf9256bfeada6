import { vi } from 'vitest'
import { Sql } from '../../../backend/src/facts/connection.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../support/server/header-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

afterEach(() => vi.restoreAllMocks())

/**
 * What reads a table or an index from its start to its end; or all of what a topic holds, which is half of it. Tables with a row for
 * each setting are read so.
 */
const BAD = /^SCAN (?!meta|setting|log_meta|sqlite_master|(?:\d+ )?CONSTANT|\d+-ROW VALUES)|\(topic=\?\)/
/** The first row, or the last. */
const END = /^[^?]* limit 1$/

test('no statement of a write reads more than it needs', async () => {
  const asked = new Map<string, Set<string>>()
  for (const method of ['all', 'get', 'run', 'insert'] as const) {
    const original = Sql.prototype[method] as (sql: string, ...values: never[]) => never
    vi.spyOn(Sql.prototype, method).mockImplementation(function (this: Sql, sql, ...values) {
      const of = asked.get(this.filename) ?? new Set()
      asked.set(this.filename, of.add(sql))
      return original.call(this, sql, ...(values as never[]))
    })
  }
  const store = new OpenedWriter()
  await history(store)
  vi.restoreAllMocks()
  const bad: string[] = []
  for (const filename of Object.values(storeFiles(store.folder))) {
    const statements = [...(asked.get(filename) ?? [])].filter((sql) =>
      /^\s*(select|insert|update|delete)/.test(sql),
    )
    expect(statements.length).toBeGreaterThan(20)
    const reader = new Sql(filename)
    for (const sql of statements) {
      const plan = reader.all(`explain query plan ${sql}`, ...Array(bindingsOf(sql)).fill(1))
      for (const { detail } of plan) if (BAD.test(detail) && !END.test(sql)) bad.push(`${sql}: ${detail}`)
    }
    reader.close()
  }
  await store.close()
  expect(bad).toEqual([])
})

function bindingsOf(sql: string): number {
  const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number))
  return numbered.length > 0 ? Math.max(...numbered) : [...sql.matchAll(/\?/g)].length
}

/** All kinds of facts, and what they change of each other. */
async function history(store: OpenedWriter): Promise<void> {
  const { chain, writer } = store
  const spend = (coin: FakeTransaction, vout: number, lockingScript = p2pkh(1)): FakeTransaction =>
    chain.spend({ inputs: [{ transaction: coin, vout }], outputs: [{ satoshis: 1, lockingScript }] })
  await store.know(chain.genesis, 100)
  const mints = chain.mintAll('abc')
  for (const mint of mints) await store.submit([mint])
  const [first] = mints as [FakeTransaction]
  const content = inscriptionScript({
    contentType: 'text/plain',
    body: utf8('text'),
    suffix: mapTail({ a: 'b' }),
  })
  const origin = chain.inscribe({ contentType: 'text/plain', body: utf8('text') })
  const [moved, said] = [spend(origin, 0), spend(origin, 0, content)]
  const [late, rival] = [spend(moved, 0), spend(first, 2, p2pkh(7))]
  await store.submit([said])
  await store.submit([moved])
  await store.know(late, 105)
  await store.know(moved, 104)
  await store.know(origin, 103)
  await store.submit([rival])
  await store.submit([spend(first, 2)])
  const headers = new HeaderChain(100)
  headers.grow(5)
  const bytes = [...headers.branch.blocks()].reverse().map(({ header }) => header.bytes)
  const part = (from: number, to: number): Uint8Array => Buffer.concat(bytes.slice(from, to))
  await writer.change('replaceHeaders', { height: 102, headers: part(2, 4), tip: undefined })
  await writer.change('replaceHeaders', { height: 104, headers: part(4, 6), tip: bytes[3] })
  await writer.change('addHeadersBelow', { to: 101, headers: part(0, 2) })
  await writer.change('sightings', [
    { txid: rival.txid, status: 'rejected' },
    { txid: first.txid, status: 'seen' },
  ])
  const { proof } = recordOf(moved, 104)
  if (proof !== undefined) await writer.change('disprove', proof)
  for (const subject of [
    { kind: 'outpoint', value: `${origin.txid}_0` },
    { kind: 'name', value: 'ab' },
  ] as const) {
    await writer.change('block', { ...subject, reason: 'reason', since: 1 })
    await writer.change('unblock', subject)
  }
  await writer.change('evict', { txid: first.txid, vout: 2 }, 1)
  await writer.change('clearHeaders')
}
