import { Mutex } from 'async-mutex'
import type { Backlog } from '../../../../backend/src/graph/graph-store.js'
import { BacklogWorker } from '../../../../src/server/store/backlog-worker.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { SILENT } from '../../../support/server/test-server.js'

/** A store with so many parts in its backlog. */
class BacklogStub {
  readonly backlog: Backlog = {
    isBehind: async () => this.parts > 0,
    workOff: () => this.workOff(),
    workBehind: async () => 0,
  }
  done: string[] = []
  fails = 0

  constructor(public parts: number) {}

  private async workOff(): Promise<boolean> {
    if (this.fails-- > 0) throw new Error('the store is gone')
    if (this.parts === 0) return false
    this.parts--
    this.done.push('part')
    return true
  }
}

function workerOn(graph: BacklogStub, logger = SILENT): { worker: BacklogWorker; lock: Mutex } {
  const lock = new Mutex()
  const worker = new BacklogWorker({
    graph,
    runLocked: (work) => lock.runExclusive(work),
    isWriting: () => lock.isLocked(),
    logger,
  })
  return { worker, lock }
}

test('all parts are done, with what others write between two of them', async () => {
  const graph = new BacklogStub(3)
  const { worker, lock } = workerOn(graph)
  worker.notify()
  const write = lock.runExclusive(async () => {
    graph.done.push('write')
  })
  await Promise.all([worker.done(), write])
  expect(graph.done).toHaveLength(4)
  expect(graph.done.indexOf('write')).toBeLessThan(3)
  expect(worker.isBusy).toBe(false)
})

test('what is left while the last part is done is not forgotten', async () => {
  const graph = new BacklogStub(1)
  const { worker } = workerOn(graph)
  const asked = graph.backlog.isBehind.bind(graph)
  let more = 2
  graph.backlog.isBehind = async () => {
    const found = await asked()
    if (!found && more-- > 0) {
      graph.parts++
      worker.notify()
    }
    return found
  }
  worker.notify()
  await worker.done()
  expect(graph.done).toEqual(['part', 'part', 'part'])
})

test('what fails is done after the next write, and ends nothing', async () => {
  const graph = new BacklogStub(2)
  graph.fails = 1
  const { worker } = workerOn(graph)
  await worker.done()
  expect(graph.done).toEqual([])
  await worker.done()
  expect(graph.done).toEqual(['part', 'part'])
  await worker.close()
})

test('what fails again and again is logged once, until it succeeds', async () => {
  const graph = new BacklogStub(1)
  const { logger, records } = keptLog()
  const { worker } = workerOn(graph, logger)
  for (const fails of [3, 1]) {
    graph.fails = fails
    graph.parts = 1
    for (let tried = 0; tried <= fails; tried++) await worker.done()
  }
  expect(graph.done).toEqual(['part', 'part'])
  expect(records).toHaveLength(2)
  await worker.close()
})

test('nothing is begun once it is closed', async () => {
  const graph = new BacklogStub(1)
  const { worker } = workerOn(graph)
  await worker.close()
  await worker.done()
  expect(graph.done).toEqual([])
})
