import { beefOfHook, type FailedHook, type HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { onEachTableEngine } from '../../support/storage/stores.js'

const txid = (number: number): string => number.toString(16).padStart(64, 'b')
const at = (number: number, vout = 0): Outpoint => ({ txid: txid(number), vout })

const admitted = (number: number, vout: number, beef = utf8(`BEEF ${number}`)): FailedHook => ({
  service: 'ls_ordinals',
  hook: 'admitted',
  topic: 'tm_ordinals',
  outpoint: at(number, vout),
  beef,
})

/** A failed hook in a form that compares, whatever a driver gives bytes as. */
const plain = (hook: FailedHook) => ({
  ...hook,
  beef: Buffer.from(beefOfHook(hook) ?? []).toString('base64'),
})

async function keptBy(outbox: HookOutbox, service: string): Promise<ReturnType<typeof plain>[]> {
  const kept: FailedHook[] = []
  for await (const hook of outbox.kept(service)) kept.push(hook)
  return kept.map(plain)
}

onEachTableEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('failed hooks of every kind come back as they were kept, those of one service alone', async () => {
    const { notes: outbox } = await openStore()
    const spent = { service: 'ls_names', hook: 'spent', topic: 'tm_names', spender: txid(9) } as const
    const failed: FailedHook[] = [
      { service: 'ls_names', hook: 'evicted', outpoint: at(1) },
      { ...spent, outpoint: at(2) },
      { ...spent, outpoint: at(3), beef: new Uint8Array(600 * 1024).fill(3) },
      admitted(4, 0),
    ]
    for (const hook of failed) await outbox.keep(hook)
    const ofNames = failed.slice(0, 3)
    expect(await keptBy(outbox, 'ls_ordinals')).toEqual(failed.slice(3).map(plain))
    const kept = await keptBy(outbox, 'ls_names')
    expect(kept).toHaveLength(3)
    expect(kept).toEqual(expect.arrayContaining(ofNames.map(plain)))
  })

  test('a failed hook is kept once, and more than a page of them are all returned', async () => {
    const { notes: outbox, rows } = await openStore()
    const failed = Array.from({ length: 101 }, (_, vout) => admitted(1, vout))
    for (const hook of failed) await outbox.keep(hook)
    await outbox.keep(admitted(1, 5))
    const kept = await keptBy(outbox, 'ls_ordinals')
    expect(new Set(kept.map(({ outpoint }) => outpoint.vout)).size).toBe(101)
    expect(kept).toHaveLength(101)
    const { graph_hook_notes, graph_pieces } = await rows()
    expect(graph_hook_notes).toHaveLength(101)
    // Of one transaction, one BEEF.
    expect(graph_pieces).toHaveLength(1)
  })

  test('the BEEF goes with the last failed hook that is released', async () => {
    const { notes: outbox, rows } = await openStore()
    const [one, two] = [admitted(1, 0), admitted(1, 1)]
    await outbox.keep(one)
    await outbox.keep(two)
    await outbox.release(one)
    expect(await keptBy(outbox, 'ls_ordinals')).toEqual([plain(two)])
    await outbox.release(two)
    const { graph_hook_notes, graph_pieces = [] } = await rows()
    expect({ graph_hook_notes, graph_pieces }).toEqual({ graph_hook_notes: [], graph_pieces: [] })
  })
})
