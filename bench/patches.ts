import { createHash } from 'node:crypto'
import { joinBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../backend/src/protocol/patch.js'
import { applyDelta, encodeDelta, targetLength } from '../backend/src/protocol/vcdiff.js'
import { delta, number } from '../test/support/protocol/deltas.js'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { ask, submission } from '../test/support/server/test-server.js'
import { cpuRatio, roundsByTurns, withProcess } from './load.js'
import type { PatchesReady } from './patches-server.js'
import { inFolder, timed } from './support.js'

const MiB = 1024 * 1024
const ROUNDS = 15
const TRIES = 5
/** Longer than anything that is kept in memory. */
const WORST = 9 * MiB
const CHAIN = 16

/** The cost of a patched page beside that of a plain one, the time to make it, and how long the worst chain holds the thread. */
export async function* patches(): AsyncGenerator<string> {
  const line = (at: number): string =>
    `<p>line ${at} ${createHash('sha256').update(String(at)).digest('hex')}</p>\n`
  const plain = utf8(Array.from({ length: 12_600 }, (_, at) => line(at)).join('')).subarray(0, MiB)
  const edited = utf8(Buffer.from(plain).toString().replaceAll('7e', '7E!'))
  const edits = encodeDelta(plain, edited)
  yield `1 MiB with ${edits.length} bytes of edits: made in ${made(edits, plain).toFixed(2)} ms per MiB (wanted: at most 10)`
  const dense = denseDelta(MiB)
  yield `1 MiB in copies of 4 bytes: made in ${made(dense, plain).toFixed(2)} ms per MiB (wanted: at most 10)`

  const lines = (folder: string) =>
    withProcess('./patches-server.js', [folder], async function* ({ url }: PatchesReady, server) {
      const chain = new FakeChain()
      const publish = async (contentType: string, body: Uint8Array): Promise<string> => {
        const transaction = chain.inscribe({ contentType, body })
        await ask(url, '/submit', submission(beefOf(transaction), ['tm_ordinals']))
        return transaction.outpoint(0)
      }
      const patch = (base: string, bytes: Uint8Array): Promise<string> =>
        publish(PATCH_TYPE, encodePatch({ base: parseOutpoint(base), delta: bytes }))
      const whole = await publish('text/html', edited)
      const patched = await patch(await publish('text/html', plain), edits)
      const at = (outpoint: string) => ({
        ...{ origin: url, paths: [`/content/${outpoint}`], server, length: edited.length },
      })
      const rounds = await roundsByTurns({ whole: at(whole), patched: at(patched) }, ROUNDS)
      yield `a patched page of 1 MiB takes ${(1 / cpuRatio(rounds.patched, rounds.whole)).toFixed(2)} times the processor time of the plain one (wanted: at most 2)`

      let base = await publish('application/x-bench', new Uint8Array(WORST))
      for (let count = 1; count < CHAIN; count++) base = await patch(base, denseDelta(WORST))
      const held: number[] = []
      const took: number[] = []
      for (let tried = 0; tried < TRIES; tried++) {
        // A new one each time: earlier results may be cached.
        const last = await patch(base, denseDelta(WORST))
        await heldOf(server)
        took.push(await timed(() => ask(url, `/content/${last}`)))
        held.push(await heldOf(server))
      }
      yield `${CHAIN} patches on each other that make ${WORST / MiB} MiB each in copies of 4 bytes: made in ${Math.min(...took).toFixed(0)} ms, the thread was held for ${Math.min(...held).toFixed(0)} ms of processor time at most (least of ${TRIES}; wanted: below 50)`
    })
  yield* inFolder(lines)
}

/** The least time of some runs, in milliseconds per MiB of the result. */
function made(bytes: Uint8Array, source: Uint8Array): number {
  const length = targetLength(bytes, source.length)
  const times = Array.from({ length: 20 }, () => {
    const began = performance.now()
    const steps = applyDelta(bytes, source, length)
    while (!steps.next().done);
    return performance.now() - began
  })
  return (Math.min(...times) * MiB) / length
}

/** Copies of 4 bytes, each with its own address. */
function denseDelta(length: number): Uint8Array {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
  const segment = hex(joinBytes([Uint8Array.of(1), number(128), Uint8Array.of(0)]))
  const copies = length / 4
  return delta({
    ...{ segment, makes: length, codes: '14'.repeat(copies) },
    addresses: hex(Uint8Array.from({ length: copies }, (_, at) => (at * 7) % 120)),
  })
}

/** The longest turn of the server's event loop since the last question, in milliseconds of processor time. */
async function heldOf(server: {
  send(message: string): boolean
  once(event: 'message', listen: (held: number) => void): unknown
}): Promise<number> {
  return await new Promise((resolve) => {
    server.once('message', resolve)
    server.send('held')
  })
}
