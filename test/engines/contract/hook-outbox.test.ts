import { beefOfHook, type FailedHook, type HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { onEachEngine } from '../../support/storage/stores.js'

const txid = (number: number): string => number.toString(16).padStart(64, 'b')
const at = (number: number, vout = 0): Outpoint => ({ txid: txid(number), vout })

const admitted = (number: number, vout: number, beef = utf8(`BEEF ${number}`)): FailedHook => ({
  service: 'ls_ordinals',
  hook: 'admitted',
  topic: 'tm_ordinals',
  outpoint: at(number, vout),
  beef,
})

/** A note as it compares, whatever a driver gives bytes as. */
const plain = (note: FailedHook) => ({
  ...note,
  beef: Buffer.from(beefOfHook(note) ?? []).toString('base64'),
})

async function keptBy(notes: HookOutbox, service: string): Promise<ReturnType<typeof plain>[]> {
  const kept: FailedHook[] = []
  for await (const note of notes.kept(service)) kept.push(note)
  return kept.map(plain)
}

onEachEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('notes of every hook come back as they were kept, those of a service alone', async () => {
    const { notes } = await openStore()
    const spent = { service: 'ls_names', hook: 'spent', topic: 'tm_names', spender: txid(9) } as const
    const told: FailedHook[] = [
      { service: 'ls_names', hook: 'evicted', outpoint: at(1) },
      { ...spent, outpoint: at(2) },
      { ...spent, outpoint: at(3), beef: new Uint8Array(600 * 1024).fill(3) },
      admitted(4, 0),
    ]
    for (const note of told) await notes.keep(note)
    const ofNames = told.slice(0, 3)
    expect(await keptBy(notes, 'ls_ordinals')).toEqual(told.slice(3).map(plain))
    const kept = await keptBy(notes, 'ls_names')
    expect(kept).toHaveLength(3)
    expect(kept).toEqual(expect.arrayContaining(ofNames.map(plain)))
  })

  test('a note is kept once, and more notes than a page holds are all passed', async () => {
    const { notes, rows } = await openStore()
    const told = Array.from({ length: 101 }, (_, vout) => admitted(1, vout))
    for (const note of told) await notes.keep(note)
    await notes.keep(admitted(1, 5))
    const kept = await keptBy(notes, 'ls_ordinals')
    expect(new Set(kept.map(({ outpoint }) => outpoint.vout)).size).toBe(101)
    expect(kept).toHaveLength(101)
    // Of one transaction, one BEEF.
    expect((await rows()).graph_pieces).toHaveLength(1)
  })

  test('the last note that is let go of takes the BEEF along', async () => {
    const { notes, rows } = await openStore()
    const [one, two] = [admitted(1, 0), admitted(1, 1)]
    await notes.keep(one)
    await notes.keep(two)
    await notes.release(one)
    expect(await keptBy(notes, 'ls_ordinals')).toEqual([plain(two)])
    await notes.release(two)
    expect(await rows()).toMatchObject({ graph_hook_notes: [], graph_pieces: [] })
  })
})
