import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { request as ask } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { hasChromium } from '../../support/browser/chromium.js'
import { testWith } from '../../support/cli/commands.js'
import { cut, streamPath, streamsOn } from '../../support/gateway/streams.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { serving } from '../../support/server/connections.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()
const browser = useBrowser()
const SECONDS = 6
const CHUNKS = 24

/** A clip that is hard to compress, with the index that players seek by at its end. */
async function clip(): Promise<Buffer> {
  const path = join(await servers.folder(), 'clip.webm')
  const source = `testsrc=duration=${SECONDS}:size=640x360:rate=15,noise=alls=20:allf=t`
  const codec = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '1M', '-g', '15']
  await promisify(execFile)('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', source, ...codec, path])
  return await readFile(path)
}

/** Plays, seeks to its last second once it has played a little, and says what came of it. */
const page = (video: string): string => `<!doctype html><title>player</title>
<p id="said"></p><video id="video" muted src="${video}"></video>
<script>
  const video = document.getElementById('video')
  const once = (event) => new Promise((done) => video.addEventListener(event, done, { once: true }))
  const state = () => ({ at: video.currentTime, ready: video.readyState, error: video.error?.message })
  const run = async () => {
    const said = {}
    video.addEventListener('error', () => finish({ error: video.error.message }))
    await Promise.all([once('loadedmetadata'), video.play()])
    said.duration = video.duration
    said.size = [video.videoWidth, video.videoHeight]
    while (video.currentTime < 0.3) await once('timeupdate')
    said.played = state()
    const seeked = once('seeked')
    video.currentTime = video.duration - 1
    await seeked
    said.seeked = state()
    if (!video.ended) await once('ended')
    said.ended = state()
    finish(said)
  }
  const finish = (said) => {
    document.getElementById('said').textContent = JSON.stringify(said)
  }
  run().catch((error) => finish({ error: String(error) }))
</script>`

/** As over a line that takes seconds for the film: what is not here yet has to be asked for. */
async function* slowly(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk
    await sleep(chunk.length / 150)
  }
}

/** A player's site: its page, and what it asks of a gateway. */
async function playerOf(gateway: string, video: string) {
  const asked: { range: string | undefined; status: number | undefined }[] = []
  const site = await serving((request, response) => {
    if (request.url === '/') {
      response.setHeader('Content-Type', 'text/html').end(page(video))
    } else if (request.url !== video) {
      response.statusCode = 404
      response.end()
    } else {
      const { range } = request.headers
      const passed = ask(new URL(video, gateway), { headers: request.headers }, (answer) => {
        asked.push({ range, status: answer.statusCode })
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        void pipeline(answer, slowly, response).catch(() => undefined)
      })
      passed.on('error', () => response.destroy())
      response.on('close', () => passed.destroy())
      passed.end()
    }
  })
  return { ...site, asked }
}

// Without a browser, or what makes a clip for it, on the machine these are skipped.
const inBrowser = hasChromium ? testWith('ffmpeg') : test.skip

describe('a film in chunks, in a browser', () => {
  inBrowser('plays, and seeks to its last second', async () => {
    const server = await servers.start()
    const film = await clip()
    const size = Math.ceil(film.length / CHUNKS)
    const chunks = cut(
      film,
      Array.from({ length: CHUNKS - 1 }, () => size),
    )
    const [first] = await streamsOn(server, new FakeChain()).streamOf(chunks, 'video/webm; stream=gw')
    const player = await playerOf(server.url, streamPath(first))
    const { page: shown } = await browser.open(player.url)
    const said = await saidIn(shown)
    expect(said).toMatchObject({ size: [640, 360], played: { at: expect.any(Number) } })
    const { duration, played, seeked, ended } = said as Record<string, number> &
      Record<'played' | 'seeked' | 'ended', { at: number; ready: number }>
    expect(duration).toBeCloseTo(SECONDS, 0)
    expect(played.at).toBeLessThan(SECONDS - 1)
    expect(seeked.at).toBeGreaterThanOrEqual(SECONDS - 1.2)
    expect(ended.at).toBeGreaterThanOrEqual(SECONDS - 0.2)
    // HAVE_CURRENT_DATA or more: there is a picture.
    for (const { ready } of [played, seeked, ended]) expect(ready).toBeGreaterThanOrEqual(2)
    // Its cache asks whether what it has still holds: the tag is the stream's, whatever part it has.
    const { asked } = player
    expect(asked.filter(({ status }) => status !== 206 && status !== 304)).toEqual([])
    // It waited neither for the index, at the end, nor for what stands before the last second.
    const starts = asked.map(({ range }) => Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1]))
    expect(starts.some((start) => start > film.length - 100_000)).toBe(true)
    expect(starts.some((start) => start > film.length / 2 && start < film.length - 100_000)).toBe(true)
  })
})
