import { createHash } from 'node:crypto'
import { TIP } from '../../../backend/src/graph/graph-store.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import { graphRecords } from '../../../backend/src/graph/records.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

// What many ask of one store at the same time, as readers of a host do.

const COUNT = 24
const numbers = Array.from({ length: COUNT }, (_, number) => number)
const at = (number: number, vout = 0): Outpoint => ({ txid: String(number).padStart(64, 'a'), vout })
const bodyOf = (number: number): Uint8Array => new TextEncoder().encode(`the body of ${number}`)
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const showing = (number: number) => ({
  sha256: hashOf(bodyOf(number)),
  contentType: `text/${number}`,
  length: bodyOf(number).length,
})

/** Every second one is held; each third of those has moved on, and nothing else is known of it. */
const held = numbers.filter((number) => number % 2 === 0)
const moved = held.filter((number) => number % 3 === 0)

const records = graphRecords({
  outputs: [
    ...held.map((number) => ({ outpoint: at(number), satoshis: 1, content: showing(number) })),
    ...moved.map((number) => ({ outpoint: at(number, 1), satoshis: 1, previous: at(number) })),
  ],
  contents: held.map((number) => ({ sha256: hashOf(bodyOf(number)), bytes: bodyOf(number) })),
  names: held.map((number) => ({ outpoint: at(number), name: `name-${number}` })),
  spends: moved.map((number) => ({ outpoint: at(number), spender: at(1000 + number).txid })),
})

const READS: Record<string, (store: HostStore, number: number) => Promise<unknown>> = {
  output: (store, number) => store.ordinals.output(at(number)),
  ordinalAt: (store, number) => store.ordinals.at(at(number), TIP),
  mergedMap: (store, number) => store.metadata.merged(at(number)),
  nameOrigin: (store, number) => store.names.originOf(`name-${number}`),
  genuineOrigins: (store, number) => store.names.genuineOrigins([at(number), at(number + 1)]),
  spenderOf: (store, number) => store.transactions.spenderOf(at(number)),
  heightOf: (store, number) => store.transactions.heightOf(at(number).txid),
  chunk: async (store, number) => {
    const body = await store.content.chunk(hashOf(bodyOf(number)), 0)
    return body && Buffer.from(body).toString()
  },
  consistent: async (store, number) => store.consistent(() => store.ordinals.output(at(number))),
}

onEachTableEngine(({ openStore, closeStores }) => {
  afterAll(closeStores)

  test('each gets its own answer, with no more reads than one after another', async () => {
    const { store, reads } = await openStore()
    await store.record(records)
    for (const [name, read] of Object.entries(READS)) {
      const before = reads()
      const alone: unknown[] = []
      for (const number of numbers) alone.push(await read(store, number))
      const between = reads()
      const together = await Promise.all(numbers.map((number) => read(store, number)))
      expect({ name, answers: together }).toEqual({ name, answers: alone })
      expect(reads() - between).toBeLessThanOrEqual(between - before)
    }
    expect(await READS.chunk?.(store, 4)).toBe('the body of 4')
    expect(await READS.nameOrigin?.(store, 4)).toEqual(at(4))
    expect(await READS.nameOrigin?.(store, 5)).toBeUndefined()
    expect(await READS.spenderOf?.(store, 6)).toBe(at(1006).txid)
  })
})
