import { vi } from 'vitest'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { StoreSpace } from '../../../../src/server/store/store-space.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { writerOf } from '../../../support/server/held-writes.js'
import { SILENT, type TestServer, untilReady, useServers } from '../../../support/server/test-server.js'
import { passTime } from '../../../support/server/waiting.js'

// A store without space, by SQLite's own bound on its pages: the engine fails as it does on a full disk.

const servers = useServers()
const chain = new FakeChain()

function setPages({ node }: TestServer, pages: number): void {
  ;(writerOf(node) as unknown as { logFile: Sql }).logFile.exec(`pragma max_page_count = ${pages}`)
}

function note(bytes = 200_000): Uint8Array {
  return beefOf(chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(bytes) }))
}

test('submissions to a full store are 503 STORE_FULL, the host is not ready, and both end when there is space', async () => {
  const { logger, records } = keptLog()
  const server = await servers.start({}, { logger })
  const kept = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(10) })
  await server.take(beefOf(kept), ['tm_ordinals'])
  const before = server.rows()
  // SQLite takes as many pages as it has where fewer are asked for.
  setPages(server, 1)
  records.length = 0
  const beef = note()
  for (let tried = 0; tried < 5; tried++) {
    const answer = await server.submit(beef, ['tm_ordinals'])
    expectError(answer, { status: 503, code: 'STORE_FULL', overlay: true })
    expect(answer.headers['retry-after']).toBe('60')
    expectError(await server.ask('/health/ready'), {
      status: 503,
      code: 'NOT_READY',
      error: 'the store is full',
    })
  }
  expect((await server.ask('/health')).json).toMatchObject({
    ready: false,
    reasons: { space: 'the store is full' },
  })
  expect((await server.ask('/health/live')).status).toBe(200)
  expect((await server.ask(`/content/${kept.outpoint(0)}`)).body).toHaveLength(10)
  expect(server.rows()).toEqual(before)
  // One line where it began, and one a minute for each of the two answers.
  expect(records.map(({ level, code, msg }) => [level, code ?? msg])).toEqual([
    [40, 'STORE_FULL'],
    [50, 'the store is full: nothing can be written until space is freed'],
    [40, 'NOT_READY'],
  ])
  setPages(server, 1_000_000)
  passTime(5000)
  await untilReady(server)
  await server.take(beef, ['tm_ordinals'])
  expect(records.at(-1)).toMatchObject({ level: 30, msg: 'the store accepts writes again' })
})

test('what the log had room for, and the index had not, is there once there is space, and its 503 does not deny that', async () => {
  const server = await servers.start()
  const { indexFile } = writerOf(server.node) as unknown as { indexFile: Sql }
  const exec = vi.spyOn(indexFile, 'exec').mockImplementation((sql) => {
    if (sql === 'commit') throw Object.assign(new Error('no space'), { code: 'SQLITE_FULL' })
    Sql.prototype.exec.call(indexFile, sql)
  })
  const late = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(20) })
  const answer = await server.submit(beefOf(late), ['tm_ordinals'])
  const error = expect.stringContaining('may already be stored by then')
  expectError(answer, { status: 503, code: 'STORE_FULL', overlay: true, error })
  expect((await server.ask(`/content/${late.outpoint(0)}`)).status).toBe(404)
  exec.mockRestore()
  expect((await server.submit(note(10), ['tm_ordinals'])).status).toBe(200)
  expect((await server.ask(`/content/${late.outpoint(0)}`)).body).toHaveLength(20)
})

describe('space is looked for', () => {
  function watched(): {
    space: StoreSpace
    pass: (ms: number) => void
    probes: PromiseWithResolvers<void>[]
  } {
    let now = 0
    const probes: PromiseWithResolvers<void>[] = []
    const probe = (): Promise<void> => {
      const probed = withResolvers()
      probes.push(probed)
      return probed.promise
    }
    const space = new StoreSpace({ probe, logger: SILENT, now: () => now })
    return { space, probes, pass: (ms) => (now += ms) }
  }

  test('only where there was none, once at a time, and not at once', async () => {
    const { space, probes, pass } = watched()
    pass(10_000)
    expect(space.reason()).toBeUndefined()
    space.found()
    pass(4999)
    expect([space.reason(), probes.length]).toEqual(['the store is full', 0])
    pass(1)
    for (let asked = 0; asked < 3; asked++) expect(space.reason()).toBe('the store is full')
    expect(probes).toHaveLength(1)
    probes[0]?.reject(new Error('no space'))
    await nextLoop()
    expect([space.reason(), probes.length]).toEqual(['the store is full', 1])
    pass(5000)
    space.reason()
    probes[1]?.resolve()
    await nextLoop()
    expect([space.reason(), probes.length]).toEqual([undefined, 2])
  })

  test('again where a larger write fails while a small one succeeds', async () => {
    const { space, probes, pass } = watched()
    space.found()
    pass(5000)
    space.reason()
    pass(1)
    space.found()
    probes[0]?.resolve()
    await nextLoop()
    expect(space.reason()).toBe('the store is full')
  })
})

interface PromiseWithResolvers<Value> {
  promise: Promise<Value>
  resolve: (value: Value) => void
  reject: (error: Error) => void
}

function withResolvers(): PromiseWithResolvers<void> {
  let resolve = (): void => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<void>((...both) => {
    ;[resolve, reject] = both
  })
  return { promise, resolve, reject }
}

async function nextLoop(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}
