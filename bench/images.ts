import sharp from 'sharp'
import { beefOf, FakeChain } from '../test/support/protocol/fake-chain.js'
import { withProcess } from './load.js'
import { inFolder, timed } from './support.js'

/** How long 4 KiB take, asked for over and over, while small images are made of ones with 40 megapixels. */
export async function* images(): AsyncGenerator<string> {
  yield* inFolder((folder) =>
    withProcess('./started-server.js', [folder], async function* (url: string) {
      const chain = new FakeChain()
      const small = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(4096).fill(120) })
      await submit(url, beefOf(small))
      const path = `${url}/content/${small.outpoint(0)}`
      yield `milliseconds of 4 KiB, idle: ${shown(await timesOf(path, (count) => count < 3000))}`
      for (const [contentType, body] of Object.entries(await photographs())) {
        const image = chain.inscribe({ contentType, body })
        await submit(url, beefOf(image))
        for (const query of ['w=384&f=webp', 'w=1920&f=avif']) {
          let status: number | undefined
          const making = timed(async () => {
            const answer = await fetch(`${url}/svc/gateway/image/${image.outpoint(0)}?${query}`)
            await answer.arrayBuffer()
            status = answer.status
          })
          const busy = await timesOf(path, () => status === undefined)
          const seconds = ((await making) / 1000).toFixed(1)
          const what = `${contentType} of ${(body.length / 1e6).toFixed(1)} MB, ?${query}`
          yield `${what}: ${status} in ${seconds} s; meanwhile: ${shown(busy)}`
        }
      }
    }),
  )
}

async function photographs(): Promise<Record<string, Buffer>> {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 40 }
  const grain = sharp({ create: { width: 1000, height: 625, channels: 3, background: '#000', noise } })
  const small = await grain.png().toBuffer()
  const large = () => sharp(small).resize(8000, 5000)
  const flat = sharp({ create: { width: 8000, height: 5000, channels: 4, background: '#8888' } })
  return {
    'image/jpeg': await large().jpeg().toBuffer(),
    'image/webp': await large().webp({ effort: 0 }).toBuffer(),
    'image/png': await flat.png({ progressive: true }).toBuffer(),
  }
}

async function submit(url: string, beef: Uint8Array): Promise<void> {
  const headers = { 'Content-Type': 'application/octet-stream', 'X-Topics': '["tm_ordinals"]' }
  const { status } = await fetch(`${url}/submit`, { method: 'POST', headers, body: new Uint8Array(beef) })
  if (status !== 200) throw new Error(`the submission was answered ${status}`)
}

async function timesOf(path: string, goOn: (count: number) => boolean): Promise<number[]> {
  const times: number[] = []
  while (goOn(times.length)) times.push(await timed(async () => await (await fetch(path)).text()))
  return times.sort((a, b) => a - b)
}

function shown(times: number[]): string {
  const at = (share: number): string =>
    (times[Math.floor((times.length - 1) * share)] ?? Number.NaN).toFixed(1)
  return `half within ${at(0.5)}, 99 of 100 within ${at(0.99)}, the slowest ${at(1)}`
}
