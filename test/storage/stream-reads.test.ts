import type { StreamChunk } from '../../backend/src/graph/graph-store.js'
import { graphRecords, type OutputRecord } from '../../backend/src/graph/records.js'
import { closeStores, openStore } from '../support/open-store.js'

afterEach(closeStores)

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
const STEPS = 1200
const MISSING = 100

async function readOf(chunks: AsyncIterable<StreamChunk>): Promise<number[]> {
  const lengths: number[] = []
  for await (const { length } of chunks) lengths.push(length)
  return lengths
}

const steps = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at)

test('a stream is read on where its steps are counted anew meanwhile', async () => {
  const { store } = await openStore()
  await store.record(graphRecords({ outputs: outputs(0, MISSING) }))
  await store.record(graphRecords({ outputs: outputs(MISSING + 1, STEPS) }))
  const query = { outpoint: outpoint(MISSING + 1), chunkTypes }
  expect((await store.stream(query))?.contentType).toBe('application/octet-stream')
  const chunks = store.streamChunks(query)
  expect((await chunks.next()).value).toEqual({ ...chunk(MISSING + 1), outpoint: outpoint(MISSING + 1) })
  await store.record(graphRecords({ outputs: outputs(MISSING, MISSING + 1) }))
  expect(await readOf(chunks)).toEqual(steps(MISSING + 2, STEPS))
  expect((await store.stream(query))?.contentType).toBe('text/plain')
  expect(await readOf(store.streamChunks({ outpoint: outpoint(0), chunkTypes }))).toEqual(steps(0, STEPS))
})

test.each([0, 9])(
  'a stream whose chunk at step %d is gone while it is read breaks off, and does not end there',
  async (gone) => {
    const { store, database } = await openStore()
    await store.record(graphRecords({ outputs: outputs(0, STEPS) }))
    const chunks = store.streamChunks({ outpoint: outpoint(0), chunkTypes })
    await chunks.next()
    await database
      .writer('graph_outputs')
      .where({ txid: Buffer.from(outpoint(gone).txid, 'hex') })
      .delete()
    await expect(readOf(chunks)).rejects.toThrow('gone while its lineage is read')
  },
)
