import type { StreamChunk } from '../../../backend/src/graph/graph-store.js'
import { graphRecords, type OutputRecord } from '../../../backend/src/graph/records.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const outpoint = (step: number) => ({ txid: (step + 1).toString(16).padStart(64, '0'), vout: 0 })
const chunk = (step: number): Omit<StreamChunk, 'outpoint'> => ({
  sha256: step.toString(16).padStart(64, 'f'),
  length: step,
})
const chunkTypes = ['gw/stream']

/** The outputs of a stream, from one step to before another. */
const outputs = (from: number, to: number): OutputRecord[] =>
  Array.from({ length: to - from }, (_, at) => from + at).map((step) => ({
    outpoint: outpoint(step),
    satoshis: 1,
    content: { ...chunk(step), contentType: step === 0 ? 'text/plain' : 'gw/stream' },
    ...(step > 0 && { previous: outpoint(step - 1) }),
  }))

/** More than are read at once, and than the pages behind the first. */
const STEPS = 560
const MISSING = 30

const walk = (chunks: AsyncIterable<StreamChunk>): AsyncIterator<StreamChunk> =>
  chunks[Symbol.asyncIterator]()

async function readOf(chunks: AsyncIterator<StreamChunk>): Promise<number[]> {
  const lengths: number[] = []
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) lengths.push(next.value.length)
  return lengths
}

const steps = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at)

onEachTableEngine(({ openStore, closeStores, runs }) => {
  afterEach(closeStores)

  test('a stream is read on where its steps are recounted meanwhile', async () => {
    const { store } = await openStore()
    await store.record(graphRecords({ outputs: outputs(0, MISSING) }))
    await store.record(graphRecords({ outputs: outputs(MISSING + 1, STEPS) }))
    const query = { outpoint: outpoint(MISSING + 1), chunkTypes }
    expect((await store.streams.summary(query))?.contentType).toBe('application/octet-stream')
    const chunks = walk(store.streams.chunks(query))
    expect((await chunks.next()).value).toEqual({ ...chunk(MISSING + 1), outpoint: outpoint(MISSING + 1) })
    await store.record(graphRecords({ outputs: outputs(MISSING, MISSING + 1) }))
    expect(await readOf(chunks)).toEqual(steps(MISSING + 2, STEPS))
    expect((await store.streams.summary(query))?.contentType).toBe('text/plain')
    expect(await readOf(walk(store.streams.chunks({ outpoint: outpoint(0), chunkTypes })))).toEqual(
      steps(0, STEPS),
    )
  })

  // The last of them where each takes long.
  test.each([0, 9].slice(-runs(2)))(
    'a stream whose chunk at step %d is gone while it is read breaks off, and does not end there',
    async (gone) => {
      const { store, removeOutput } = await openStore()
      await store.record(graphRecords({ outputs: outputs(0, STEPS) }))
      const chunks = walk(store.streams.chunks({ outpoint: outpoint(0), chunkTypes }))
      await chunks.next()
      await removeOutput(outpoint(gone))
      await expect(readOf(chunks)).rejects.toThrow('removed while its lineage was read')
    },
  )
})
