import { rmSync } from 'node:fs'
import { Sql } from '../../../backend/src/facts/connection.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { inscriptionScript, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

// A write that fails at any of its statements leaves both files as they were, and a writer that goes on.

const METHODS = ['run', 'get', 'all', 'insert', 'exec'] as const

const store = new OpenedWriter()
afterAll(() => store.close())

/** What both files hold. */
function contents(): unknown {
  const { log, index } = storeFiles(store.folder)
  const [logFile, indexFile] = [new Sql(log), new Sql(index)]
  const rows = {
    facts: logFile.all('select kind, hex(key) as key from log order by seq'),
    pending: logFile.all('select hex(txid) as txid, waiting, proven, arrived from pending order by arrived'),
    spends: logFile.all('select hex(spender) as spender, vout from pending_spend order by 1, 2'),
    index: canonicalRows(indexFile),
  }
  logFile.close()
  indexFile.close()
  return rows
}

/** Has a statement of the writer fail: the one of this number, counted from 0. Returns how many there were by now. */
function failAt(number: number): () => number {
  const { logFile, indexFile } = store.writer as unknown as Record<'logFile' | 'indexFile', Sql>
  let count = 0
  for (const file of [logFile, indexFile])
    for (const method of METHODS) {
      const original = Sql.prototype[method] as (...values: unknown[]) => unknown
      // What undoes a failure does not fail.
      const call = (...values: unknown[]): unknown => {
        if (!String(values[0]).startsWith('rollback') && count++ === number)
          throw new Error(`statement ${number}`)
        return original.apply(file, values)
      }
      Object.assign(file, { [method]: call })
    }
  return () => {
    for (const file of [logFile, indexFile])
      for (const method of METHODS) Reflect.deleteProperty(file, method)
    return count
  }
}

test('a proof that has what waits win over what stood', async () => {
  const { chain, writer } = store
  await store.know(chain.genesis, 100)
  const root = chain.node('')
  const [squat, honest, further] = [chain.mint('s', { from: root }), chain.mint('h'), chain.mint('ho')]
  await store.submit([squat])
  await store.submit([honest])
  await writer.opened
  const before = contents()
  let failed = 0
  for (let number = 0, isDone = false; !isDone; number++) {
    const restore = failAt(number)
    const outcome = await store.know(further, 101).catch((error: Error) => error.message)
    restore()
    if (typeof outcome === 'string') {
      expect(outcome).toBe(`statement ${number}`)
      failed++
      // But if only the commit of the index failed: then the log has the facts.
      if (store.facts({ further }).length === 0) expect(contents()).toEqual(before)
      else break
    } else isDone = true
  }
  expect(failed).toBeGreaterThan(100)
  // What the log has, the next write brings into the index.
  await store.writer.change('block', { kind: 'name', value: 'x', reason: '', since: 1 })
  expect([store.names(), store.pending({ squat, honest, further })]).toEqual([['h', 'ho'], []])
  const after = contents()
  await store.reopen(({ index }) => rmSync(index))
  expect(contents()).toEqual(after)
})

test('what is pending is noted with the next commit if the index failed to commit after the log', async () => {
  const { chain, writer } = store
  const funding = chain.spend({ outputs: [{ satoshis: 9, lockingScript: OPEN_LOCK }] })
  const spending = (text: string) => {
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
    return chain.spend({ inputs: [funding], outputs: [{ satoshis: 1, lockingScript }] })
  }
  const [first, second] = [spending('first'), spending('second')]
  await store.submit([first, funding])
  const { indexFile } = writer as unknown as { indexFile: Sql }
  const exec = vi.spyOn(indexFile, 'exec').mockImplementation((sql) => {
    if (sql === 'commit') throw new Error('no space')
    Sql.prototype.exec.call(indexFile, sql)
  })
  await expect(store.submit([second])).rejects.toThrow('no space')
  exec.mockRestore()
  const changes = store.changes().length
  await writer.setting('another', 'write')
  expect([store.pending({ second }), store.changes().length]).toEqual([['second'], changes + 1])
})

test('of writes that share a commit, one that fails leaves nothing to the others', async () => {
  const inscribed = (text: string) => store.chain.inscribe({ contentType: 'text/plain', body: utf8(text) })
  const failing = inscribed('fails')
  let apart = 0
  for (let number = 0; ; number++) {
    const other = inscribed(`other ${number}`)
    const restore = failAt(number)
    const [first, second] = await Promise.allSettled([store.know(failing, 102), store.know(other, 102)])
    restore()
    if (first.status === 'fulfilled') break
    if (second.status === 'rejected') continue
    apart++
    expect(second.value.admitted.map(({ outpoint }) => outpoint.txid)).toEqual([other.txid])
  }
  expect(apart).toBeGreaterThan(10)
})
