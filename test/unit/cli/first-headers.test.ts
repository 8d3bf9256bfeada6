import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { vi } from 'vitest'
import { untilSignal } from '../../../src/cli/command.js'
import { runImport } from '../../../src/cli/import.js'
import { runResolve } from '../../../src/cli/name-commands.js'
import { CommandOutput } from '../../../src/cli/output.js'
import { openOwnHeaders } from '../../../src/cli/own-headers.js'
import { readConfig } from '../../../src/server/config/config.js'
import { openNode } from '../../../src/server/node.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../support/server/header-chain.js'
import { startHeaderService } from '../../support/server/header-service.js'
import { SILENT, treeOf, useServers } from '../../support/server/test-server.js'

// Commands that have no block headers yet, and fetch them from a source that takes its time.

const servers = useServers()

/** Output on a terminal, and what resolves once it shows a text. */
function terminal() {
  const stdout = new PassThrough()
  const stderr = Object.assign(new PassThrough(), { isTTY: true })
  let text = ''
  const heard = new Set<() => void>()
  stderr.on('data', (chunk) => {
    text += chunk
    for (const each of heard) each()
  })
  return {
    output: new CommandOutput({ stdout, stderr, json: false, env: {} }),
    printed: () => String(stdout.read(stdout.readableLength) ?? ''),
    shows: async (wanted: string) =>
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (text.includes(wanted)) resolve()
        }
        heard.add(look)
        look()
      }),
  }
}

async function setUp() {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  headers.mine([chain.genesis])
  const mint = chain.mint('o')
  headers.mine([mint])
  headers.grow(100)
  const { service, settings } = await startHeaderService(headers)
  const folder = await servers.folder()
  const env = { ...treeOf(chain.deployment), ...settings, XDG_CACHE_HOME: folder, XDG_CONFIG_HOME: folder }
  return { chain, headers, mint, service, env, folder }
}

/** Has a service of headers wait. @returns What lets it go on. */
function hold(service: { held: Promise<void> | undefined }): () => void {
  let release = (): void => undefined
  service.held = new Promise((resolve) => (release = resolve))
  return release
}

const FETCHING = 'block headers are being fetched; there are none yet'
const { signal } = new AbortController()

test('the first command shows that it fetches headers, and asks about the name when it has them', async () => {
  const { chain, headers, mint, service, env, folder } = await setUp()
  const server = await servers.start(treeOf(chain.deployment))
  for (const each of [chain.genesis, mint]) await server.submit(headers.branch.beef(each))
  const release = hold(service)
  const { output, shows, printed } = terminal()
  const fetched = vi.spyOn(globalThis, 'fetch')
  const asked = (): string[] =>
    fetched.mock.calls.map(([url]) => String(url)).filter((url) => url.includes('/svc/'))
  const options = { name: 'o', urls: [server.url], requireProofs: true, env, output, signal }
  const resolving = runResolve({ ...options, cache: true }, { accept: false })
  await shows(FETCHING)
  expect(asked()).toEqual([])
  release()
  await resolving
  expect(asked()).not.toEqual([])
  expect(printed()).toContain('proven  yes')
  expect((await readdir(join(folder, 'minetree'))).sort()).toEqual(['headers', 'segments'])
  fetched.mockRestore()

  const other = await servers.folder()
  const cold = { ...env, XDG_CACHE_HOME: other }
  await runResolve({ ...options, env: cold, cache: false }, { accept: false })
  expect(await readdir(other)).toEqual([])
})

test('a signal ends the download of headers', async () => {
  const { service, env } = await setUp()
  service.page = 10
  const stop = new AbortController()
  service.onQuestion = () => {
    if (service.asked.length === 4) stop.abort(new Error('the user has enough'))
  }
  const { output } = terminal()
  const headers = openOwnHeaders(readConfig(env), { env, output, signal: stop.signal })
  if (headers === 'scripts only') throw new Error('there are headers')
  await headers.currentHeight()
  expect(service.asked).toHaveLength(4)
})

test.each(['well', 'with an error'])(
  'whatever a command that ends %s has begun ends with it',
  async (how) => {
    const before = process.listenerCount('SIGINT')
    let kept: AbortSignal | undefined
    const work = untilSignal(terminal(), async ({ signal: given }) => {
      kept = given
      expect(given.aborted).toBe(false)
      if (how !== 'well') throw new Error(how)
    })
    await (how === 'well' ? work : expect(work).rejects.toThrow(how))
    expect(kept?.aborted).toBe(true)
    expect(process.listenerCount('SIGINT')).toBe(before)
  },
)

test('an import into a new store waits for headers, longer than an answer may take', async () => {
  const { chain, headers, mint, service, env } = await setUp()
  const folder = await servers.folder()
  const paths = await Promise.all(
    [chain.genesis, mint].map(async (transaction, at) => {
      const path = join(folder, `${at}.beef`)
      await writeFile(path, headers.branch.beef(transaction))
      return path
    }),
  )
  const release = hold(service)
  const config = readConfig({ ...env, DATA_DIR: await servers.folder() })
  const { output, shows, printed } = terminal()
  const open = () => openNode({ config, logger: SILENT })
  const importing = runImport({ open, paths, trust: false, output, signal })
  await Promise.race([shows(FETCHING), importing])
  release()
  await importing
  expect(printed()).toContain('admitted 2 of 2 transactions')
})
