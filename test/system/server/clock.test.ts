import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { askOffered } from '../../support/server/synced-world.js'
import { type Answer, ask, submission } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

// A server whose time of day jumps, as when a machine without a battery learns what time it is.

const HOUR = 3_600_000
const RATE = 20
const cli = useBuiltCli()

test('limits, their ends and the order of what is offered are the same whatever the clock says', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'minetree-clock-'))
  const file = join(dataDir, 'shift')
  const preload = resolve(import.meta.dirname, '../../support/cli/shifted-clock.mjs')
  const running = cli.start(['serve'], {
    NODE_OPTIONS: `--import ${preload}`,
    CLOCK_SHIFT: file,
    ...{ PROFILE: 'local', CHAIN_TRACKER: 'scripts-only', SEED: 'none', PORT: '0', HOST: '127.0.0.1' },
    ...{ DATA_DIR: dataDir, TRUST_PROXY: '1', READS_PER_MINUTE: String(RATE) },
  })
  const url = await running.url
  const server = { ask: (path: string, question = {}) => ask(url, path, question) }
  const chain = new FakeChain()
  let clients = 0
  const client = (): string => `192.0.2.${++clients}`
  const read = (from: string): Promise<Answer> =>
    ask(url, '/svc/names/origin/a', { headers: { 'X-Forwarded-For': from } })
  const first = client()
  const since: number[] = []
  for (const shift of [0, -2 * HOUR, 3 * HOUR, -24 * HOUR]) {
    await shiftClock(running, { file, shift })
    for (const each of [first, client()]) {
      for (let reads = 0; reads < RATE; reads++) await read(each)
      const { status, headers } = await read(each)
      expect({ shift, status }).toEqual({ shift, status: 429 })
      const seconds = Number(headers['retry-after'])
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(60)
    }
    const note = chain.inscribe({ contentType: 'text/plain', body: utf8(`at ${shift}`) })
    const sent = await ask(url, '/submit', submission(beefOf(note), ['tm_ordinals']))
    expect(sent.status).toBe(200)
    const offered = await askOffered(server, { topic: 'tm_ordinals', since: since.at(-1) ?? 0 })
    expect(offered.at(-1)?.txid).toBe(note.txid)
    since.push(offered.at(-1)?.score ?? 0)
    expect((await ask(url, '/health/ready')).status).toBe(200)
  }
  expect(since).toEqual([...new Set(since)].sort((a, b) => a - b))
  running.child.kill()
  await running.ended
  await rm(dataDir, { recursive: true })
})

async function shiftClock(
  { child }: Running,
  { file, shift }: { file: string; shift: number },
): Promise<void> {
  await writeFile(file, String(shift))
  child.kill('SIGUSR2')
  await until(async () => (await readFile(`${file}.done`, 'utf8').catch(() => '')) === String(shift))
}
