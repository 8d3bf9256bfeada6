import { readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { melody } from '../../../src/cli/local-network/melody.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { IS_NIGHTLY, sampleOf } from '../../support/nightly.js'
import { ask, type Environment, useServers } from '../../support/server/test-server.js'
import { storedRows } from '../../support/storage/fact-rows.js'

// `npm start` on an empty folder, as a process of its own, and what the user finds there.

const cli = useBuiltCli()
const { folder } = useServers()

const SITE = resolve(import.meta.dirname, '../../../assets/local-network')

interface Started extends Running {
  /** Waits until this was printed, and returns the output so far. */
  said(text: string): Promise<string>
}

async function settings(more: Environment = {}): Promise<Environment> {
  return { PORT: '0', DATA_DIR: await folder(), ...more }
}

function start(env: Environment): Started {
  const running = cli.start(['serve'], env)
  const stderr = running.child.stderr as Readable
  let all = ''
  stderr.on('data', (chunk: Buffer) => {
    all += chunk.toString('utf8')
  })
  const said = async (text: string): Promise<string> => {
    while (!all.includes(text)) {
      if (stderr.readableEnded) throw new Error(`it ended, and said ${JSON.stringify(all)} only`)
      await new Promise<void>((more) => {
        stderr.once('data', () => more())
        stderr.once('end', more)
      })
    }
    return all
  }
  return { ...running, said }
}

async function stop({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
}

/** The URL that a start says to open. */
async function toOpen(started: Started): Promise<string> {
  const [, url = ''] = /^ {2}(http\S+)$/m.exec(await started.said('or mine a name here:')) ?? []
  return url
}

/** Where its site is below `/content/`. */
async function siteOf(home: string): Promise<string> {
  const { origin } = (await getJson(`${home}svc/names/home`)) as { origin: string }
  return `${home}content/${origin}:-1/`
}

/** The outpoint at which its melody begins. */
async function melodyOf(home: string): Promise<string | undefined> {
  const { inscriptions } = (await getJson(`${home}svc/gateway/newest/inscriptions`)) as {
    inscriptions: { outpoint: string; contentType: string }[]
  }
  return inscriptions.find(({ contentType }) => contentType.startsWith('audio/wav'))?.outpoint
}

const get = async (url: string): Promise<{ status: number; type: string | null; body: Buffer }> => {
  const response = await fetch(url)
  const body = Buffer.from(await response.arrayBuffer())
  return { status: response.status, type: response.headers.get('content-type'), body }
}

const getJson = async (url: string): Promise<unknown> => JSON.parse((await get(url)).body.toString('utf8'))

/** The paths of all files of the site. */
async function sitePaths(): Promise<string[]> {
  const entries = await readdir(SITE, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(SITE.length + 1))
}

async function expectSite(url: string): Promise<void> {
  const front = await get(url)
  expect(front.body).toEqual((await get(`${url}index.html`)).body)
  const paths = await sitePaths()
  expect(paths).toContain('how/index.html')
  for (const path of paths) {
    const { status, type, body } = await get(url + path)
    expect(status).toBe(200)
    const file = await readFile(join(SITE, path))
    if (!path.endsWith('.html')) expect(body.equals(file)).toBe(true)
    else {
      expect(type).toBe('text/html; charset=utf-8')
      await expectPage(url + path, body.toString('utf8'))
    }
  }
}

/** Every fact stands in a page, and every link of it leads somewhere. */
async function expectPage(url: string, page: string): Promise<void> {
  expect(page).not.toMatch(/%[A-Z]+%/)
  const links = [...page.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, link = '']) => link)
  expect(links.length).toBeGreaterThan(3)
  for (const link of links) expect([link, (await get(new URL(link, url).href)).status]).toEqual([link, 200])
}

test('an empty folder becomes a local network, which the next start finds as it was', async () => {
  // At night, with what is set by default.
  const difficulty = IS_NIGHTLY ? 22 : 8
  const env = await settings(IS_NIGHTLY ? {} : { DIFFICULTY: String(difficulty) })
  const first = start(env)
  const home = await toOpen(first)
  expect((await get(home)).type).toBe('text/html; charset=utf-8')
  await expectSite(await siteOf(home))
  const { origin, sequence } = (await getJson(`${home}svc/names/home`)) as {
    origin: string
    sequence: number
  }
  expect({ origin, sequence }).toEqual({ origin: expect.stringMatching(/^[0-9a-f]{64}_2$/), sequence: 1 })
  expect(await getJson(`${home}svc/gateway/metadata/${origin}:-1`)).toMatchObject({
    contentType: 'gw-fs/json',
    sequence: 1,
  })
  const stream = await get(`${home}svc/gateway/stream/${await melodyOf(home)}`)
  expect(stream.type).toMatch(/^audio\/wav;/)
  expect(stream.body.equals(melody())).toBe(true)
  const { names } = (await getJson(`${home}svc/names`)) as { names: { name: string }[] }
  expect(names.map(({ name }) => name)).toEqual(['h', 'ho', 'hom', 'home', 'hu', 'hum'])
  const url = await first.url
  expect(await getJson(`${url}/deployment.json`)).toMatchObject({ difficulty, covenantVersion: 1 })

  const mined = await cli.run(['mine', 'hu1', '--url', url])
  expect(mined).toMatchObject({ code: 0, stdout: expect.stringMatching(/^hu1 [0-9a-f]{64}_2\n$/) })
  expect(await getJson(`${url}/svc/names/hu1`)).toMatchObject({ name: 'hu1', sequence: 0 })
  await stop(first)
  const { stdout } = await first.ended
  for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ level: 30 })

  const rows = storedRows(env.DATA_DIR ?? '')
  const second = start({ ...env, COVENANT_VERSION: '' })
  expect(new URL(await siteOf(await toOpen(second))).pathname).toBe(`/content/${origin}:-1/`)
  expect(await getJson(`${await second.url}/deployment.json`)).toMatchObject({ covenantVersion: 1 })
  await stop(second)
  expect((await second.ended).stderr).not.toContain('mined')
  expect(storedRows(env.DATA_DIR ?? '')).toEqual(rows)
})

describe('a filling that ends early', () => {
  const easy = { DIFFICULTY: '8', COVENANT_VERSION: '2' }

  const counted = (dataDir = ''): Record<string, number> =>
    Object.fromEntries(Object.entries(storedRows(dataDir)).map(([table, { length }]) => [table, length]))

  test('is gone on with by the next start, wherever it was killed', async () => {
    const env = await settings(easy)
    for (const text of sampleOf(
      ['filling', 'published a melody', 'mined h ', 'mined hum', 'mined hom ', 'published a site'],
      3,
    )) {
      const killed = start(env)
      await killed.said(text)
      killed.child.kill('SIGKILL')
      expect((await killed.ended).signal).toBe('SIGKILL')
    }
    // The tree keeps its version.
    const last = start({ ...env, COVENANT_VERSION: '' })
    await expectSite(await siteOf(await toOpen(last)))
    expect(await getJson(`${await last.url}/deployment.json`)).toMatchObject({ covenantVersion: 2 })
    await stop(last)
    const undisturbed = await settings({ ...easy, HOST: '0.0.0.0' })
    const whole = start(undisturbed)
    // All addresses of a machine are none that a browser opens.
    expect(await toOpen(whole)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    await stop(whole)
    expect(counted(env.DATA_DIR)).toEqual(counted(undisturbed.DATA_DIR))
  })

  test('answers until it is interrupted, and ends with 0', async () => {
    // At 32 bits, a search takes minutes.
    const running = start(await settings({ DIFFICULTY: '32' }))
    await running.said('published a melody')
    expect((await ask(await running.url, '/svc/names/mine/home')).json).toMatchObject({ domain: '' })
    running.child.kill('SIGINT')
    const { code, stdout, stderr } = await running.ended
    expect(code).toBe(0)
    expect(stdout).toContain('stopped')
    expect(stderr).not.toContain('not filled')
  })

  test('is reported, and the server keeps running', async () => {
    const running = start(await settings({ ...easy, CONTENT_TYPES: 'text/html' }))
    const said = await running.said('is not filled')
    expect(said).toMatch(/^minetree: the local network is not filled: .*chunk 0 of the melody.*tries again$/m)
    expect((await ask(await running.url, '/health/ready')).status).toBe(200)
    await stop(running)
    expect((await running.ended).stdout).toContain('"msg":"the local network is not filled"')
  })
})

test('SEED=none leaves a server empty', async () => {
  const env = await settings({ SEED: 'none' })
  const running = start(env)
  expect((await ask(await running.url, '/svc/names/mine/hey')).status).toBe(404)
  await stop(running)
  expect((await running.ended).stderr).toBe('')
  const { log, pending, register } = storedRows(env.DATA_DIR ?? '')
  expect({ log, pending, register }).toEqual({
    ...{ log: [], pending: [] },
    register: [JSON.stringify({ subject: 'setting tracker', value: '"scripts-only"' })],
  })
})

test('a difficulty that no covenant can have is reported in one line, and can be changed', async () => {
  const env = await settings({ DIFFICULTY: '33' })
  const { code, stdout, stderr } = await cli.run(['serve'], env)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^minetree: DIFFICULTY: cannot deploy this tree: [^\n]*33[^\n]*\n$/)
  const again = start({ ...env, DIFFICULTY: '8' })
  await again.url
  await stop(again)
})
