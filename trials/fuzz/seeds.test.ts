import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtPackage } from '../../test/support/cli/built-package.js'
import type { DnsServer } from '../../test/support/server/dns-server.js'
import type { ServerProcess } from '../../test/support/server/server-process.js'
import { readAnswers } from './answer.js'
import { domainServer } from './domains.js'
import { exchange } from './exchange.js'
import { fuzz } from './fuzzing.js'
import { fillHost, startHost } from './host.js'
import { judge } from './judge.js'
import { casesOf, kindsOf } from './kinds.js'
import { wrongWith } from './probe.js'
import { readSeeds, seedRequests } from './seed-files.js'
import { fuzzWorld } from './world.js'

// All kept inputs, and a few hundred new ones, with the command as it is installed. `npm run fuzz` runs for longer.

const PATIENCE = 60_000
const CASES = 300
const SEED = 1

const seeds = readSeeds(join(import.meta.dirname, '../../test/vectors/fuzz'))
const world = fuzzWorld()
const lines: string[] = []
let folder = ''
let server: ServerProcess
let dns: DnsServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'minetree-test-'))
  const main = join(await builtPackage(), 'dist/cli/main.js')
  const domains = await domainServer(world.prey)
  dns = domains.dns
  const { env } = domains
  server = await startHost({ main, dataDir: folder, world, env, onLine: (line) => lines.push(line) })
  await fillHost(server, world)
})
afterAll(async () => {
  await server.kill('SIGKILL')
  await dns.close()
  await rm(folder, { recursive: true, force: true })
})

async function expectWell(): Promise<void> {
  for (const probe of world.probes) {
    const wrong = await wrongWith(probe, { url: server.url, patience: PATIENCE })
    expect({ ...probe.request, wrong }).toEqual({ ...probe.request, wrong: undefined })
  }
}

test('good requests are answered rightly', expectWell)

test('there is a seed of every class of input', () => {
  const kinds = new Set(seeds.map(({ kind }) => kind))
  expect(Object.keys(kindsOf(world)).filter((kind) => !kinds.has(kind))).toEqual([])
})

test.each(seeds)('$file: $about', async ({ requests, expected }) => {
  for (const [at, request] of requests.entries()) {
    const answered = await exchange(server.url, request, { patience: PATIENCE })
    expect(judge(request, answered).complaints).toEqual([])
    const { status, code } = expected[at] ?? {}
    const [answer] = status === undefined ? [] : readAnswers(answered.received, { isHead: () => false })
    expect(answer?.status).toBe(status)
    if (code !== undefined) expect(JSON.parse(String(answer?.body))).toMatchObject({ code })
  }
  expect(server.isRunning()).toBe(true)
})

test('good requests are answered rightly after all seeds', expectWell)

test(`of ${CASES} new cases, none brings it to do what it should not`, async () => {
  let left = CASES
  const failures: string[] = []
  const figures = await fuzz({
    url: () => server.url,
    isRunning: () => server.isRunning(),
    cases: casesOf(world, { seed: SEED }),
    probes: world.probes,
    clients: 8,
    patience: PATIENCE,
    goesOn: () => left-- > 0,
    onFailure: async ({ fuzzCase, complaints }) => {
      failures.push(`${complaints} ${fuzzCase.kind} ${JSON.stringify(seedRequests(fuzzCase))}`)
    },
  })
  expect(failures).toEqual([])
  expect(figures.cases).toBe(CASES)
  expect(figures.probes).toBeGreaterThan(world.probes.length)
  expect(server.isRunning()).toBe(true)
})

test('every line of the log is JSON, whatever was sent', () => {
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ msg: expect.any(String) })
})
