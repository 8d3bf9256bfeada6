import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { utf8 } from '../backend/src/protocol/bytes.js'
import { beefOf, FakeChain, inscriptionScript, p2pkh } from '../test/support/protocol/fake-chain.js'
import { withProcess } from './load.js'
import { timed } from './support.js'

const BYTES = 50 * 1024 * 1024

/**
 * How long small content takes, asked for over and over, while a transaction of 50 MiB is admitted, against how long it
 * takes when nothing else goes on.
 */
export async function* large(): AsyncGenerator<string> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-bench-'))
  try {
    yield* withProcess('./large-server.js', [folder], async function* (url: string) {
      const chain = new FakeChain()
      const small = chain.inscribe({ contentType: 'text/plain', body: utf8('small') })
      await submit(url, beefOf(small))
      const path = `${url}/content/${small.outpoint(0)}`
      let admitted: number | undefined
      const idle = await timesOf(path, (count) => count < 5000)
      const body = new Uint8Array(BYTES).map((_, at) => at % 251)
      const lockingScript = inscriptionScript({ contentType: 'video/mp4', body })
      const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
      const inputs = [{ transaction: coin, vout: 0 }]
      const transaction = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
      const beef = beefOf(transaction, { with: [coin] })
      const admission = timed(() => submit(url, beef)).then((time) => {
        admitted = time
      })
      const busy = await timesOf(path, () => admitted === undefined)
      await admission
      yield `50 MiB admitted in ${((admitted ?? Number.NaN) / 1000).toFixed(1)} s; meanwhile ${busy.length} small requests`
      yield `milliseconds of one, idle: ${shown(idle)}; meanwhile: ${shown(busy)}`
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export async function submit(url: string, beef: Uint8Array): Promise<void> {
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': '["tm_ordinals"]' }
  const { status } = await fetch(`${url}/submit`, { method: 'POST', headers, body: new Uint8Array(beef) })
  if (status !== 200) throw new Error(`the submission was answered ${status}`)
}

export async function timesOf(path: string, goOn: (count: number) => boolean): Promise<number[]> {
  const times: number[] = []
  while (goOn(times.length)) times.push(await timed(async () => await (await fetch(path)).text()))
  return times.sort((a, b) => a - b)
}

export function shown(times: number[]): string {
  const at = (share: number): string =>
    (times[Math.floor((times.length - 1) * share)] ?? Number.NaN).toFixed(1)
  return `half within ${at(0.5)}, 99 of 100 within ${at(0.99)}, the slowest ${at(1)}`
}
