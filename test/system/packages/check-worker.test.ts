import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Evidence, NameSource } from '../../../src/client/name-source.js'
import { resolveName } from '../../../src/client/resolve.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import {
  at,
  FakeHeaders,
  namedWorld,
  outpointBeef,
  proofOf,
  recordsOf,
} from '../../support/client/name-proofs.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { givenTime } from '../../support/server/waiting.js'

// Evidence that is checked in workers of the package as built.

const built = useBuiltCli()
const world = namedWorld()
const { deployment, headers, line, mints, origin, tip, transfers, purse, way } = world
const [first, second] = transfers

const workerUrl = (): URL => pathToFileURL(join(built.folder(), 'dist/src/client/check-worker.js'))

/** A worker that runs this instead. `say` sends a message, and `received` resolves with the first one. */
const workerOf = (program: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(
      `import { parentPort } from 'node:worker_threads'; const say = (news) => parentPort.postMessage(news); const received = new Promise((resolve) => parentPort.once('message', resolve)); say({ kind: 'ready' }); ${program}`,
    )}`,
  )

const proofs: Evidence = {
  form: 'proofs',
  origin,
  tip,
  proof: proofOf(line),
  provenance: outpointBeef(tip, recordsOf(way)),
}
const history: Evidence = {
  form: 'history',
  beef: outpointBeef(tip, recordsOf([...line, first, purse, second])).subarray(40),
  tip,
}

const claiming = (index: string, evidence: Evidence): NameSource => ({
  index,
  ask: async () => [{ index, kind: 'claimed', evidence, spent: false }],
})

const resolve = async (
  sources: NameSource[],
  more: Partial<Parameters<typeof resolveName>[0]> = {},
): ReturnType<typeof resolveName> =>
  await resolveName({
    name: 'abc',
    deployment,
    chainTracker: headers,
    sources,
    workerUrl: workerUrl(),
    ...more,
  })

const SHORT = 1500

test('what holds in this thread holds in a worker, with the same result', async () => {
  const sources = [claiming('A', proofs), claiming('B', history)]
  const here = await resolve(sources, { workers: false })
  const asked = new Set(headers.asked.splice(0))
  const there = await resolve(sources)
  const timeless = (found: typeof here) => ({
    ...found,
    checkedAt: 0,
    freshness: { ...found.freshness, until: 0 },
  })
  expect(timeless(there)).toEqual(timeless(here))
  expect(there).toMatchObject({
    proven: true,
    tip: { tip },
    reports: [{ verdict: 'agrees' }, { verdict: 'agrees' }],
  })
  // The chain tracker is asked in this thread.
  expect(asked.size).toBeGreaterThan(5)
  expect(new Set(headers.asked)).toEqual(asked)
})

test('what does not hold is refuted by the same error', async () => {
  const cut = { ...proofs, proof: proofOf(line.slice(1)) } as Evidence
  const stray = { ...proofs, proof: proofOf([...line.slice(0, -1), { ...mints.abc, height: 1 }]) } as Evidence
  const open = { ...proofs, proof: proofOf(line, { unproven: [mints.abc] }) } as Evidence
  const sources = [claiming('A', cut), claiming('B', stray), claiming('C', open), claiming('D', proofs)]
  const there = await resolve(sources, { requireProofs: true })
  const here = await resolve(sources, { requireProofs: true, workers: false })
  expect(there.reports).toMatchObject([
    { verdict: 'refuted', error: { name: 'ProofError', code: 'NO_GENESIS' } },
    { verdict: 'refuted', error: { name: 'ProofError', code: 'BAD_PATH' } },
    { verdict: 'refuted', error: { name: 'ProofError', code: 'UNPROVEN' } },
    { verdict: 'agrees' },
  ])
  expect(there.reports).toEqual(here.reports)
})

test('budgets of the caller hold in a worker', async () => {
  const chain = new FakeChain()
  const coin = chain.spend({
    inputs: [],
    outputs: [{ satoshis: 1000, lockingScript: Uint8Array.from([...new Array(5_000).fill(0x61), 0x51]) }],
  })
  const mint = chain.mint('a', { funding: [at(coin, 0)] })
  const all = [chain.genesis, coin, mint]
  const beef = outpointBeef(at(mint, 2), recordsOf(all, [mint])).subarray(40)
  const source = claiming('A', { form: 'history', beef, tip: at(mint, 2) })
  const check = { name: 'a', deployment: chain.deployment, chainTracker: new FakeHeaders(all) }
  await expect(resolve([source], { ...check, maxScriptWork: 500_000 })).rejects.toMatchObject({
    reports: [{ verdict: 'refuted', error: { code: 'TOO_COSTLY' } }],
  })
  await expect(resolve([source], { ...check, maxBytes: 1000 })).rejects.toMatchObject({
    reports: [{ verdict: 'refuted', error: { code: 'TOO_LARGE' } }],
  })
})

test('without headers, paths are taken', async () => {
  const resolved = await resolve([claiming('A', proofs)], { chainTracker: 'scripts only' })
  expect(resolved).toMatchObject({ proven: false, tip: { tip } })
})

test('a chain tracker that fails, or hangs, is no fault of the index', async () => {
  const away = { isValidRootForHeight: async () => await Promise.reject(new Error('away')) }
  await expect(resolve([claiming('A', proofs)], { chainTracker: away })).rejects.toMatchObject({
    name: 'HeadersError',
    message: expect.stringContaining('away'),
  })
  const hanging = { isValidRootForHeight: async () => await new Promise<boolean>(() => {}) }
  // Long enough for a worker to start where others keep the machine busy.
  await givenTime(SHORT, (timeout) =>
    expect(resolve([claiming('A', proofs)], { chainTracker: hanging, timeout })).rejects.toMatchObject({
      name: 'HeadersError',
      message: expect.stringContaining('in time'),
    }),
  )
})

test('a worker that never gives way is ended at the deadline', async () => {
  const resolving = resolve([claiming('A', proofs)], { workerUrl: workerOf('for (;;);'), timeout: SHORT })
  await expect(resolving).rejects.toMatchObject({
    reports: [{ verdict: 'failed', error: { name: 'SourceError', code: 'TIMEOUT' } }],
  })
})

test('a worker that breaks off over what it checks is the fault of the index', async () => {
  const holding = 'const held = []; await received; for (;;) held.push(new Array(1e6).fill(0.5))'
  for (const program of [
    'await received; process.exit(7)',
    "await received; throw new Error('oh')",
    holding,
  ]) {
    const resolving = resolve([claiming('A', proofs)], { workerUrl: workerOf(program), timeout: 60_000 })
    await expect(resolving).rejects.toMatchObject({
      code: 'NO_PROOF',
      reports: [{ verdict: 'failed', error: { name: 'SourceError', code: 'BAD_ANSWER' } }],
    })
  }
})

test('a worker that cannot be started is the fault of the caller', async () => {
  const workerUrl = pathToFileURL('/nowhere/check-worker.js')
  await expect(resolve([claiming('A', proofs)], { workerUrl })).rejects.toMatchObject({
    name: 'CheckWorkerError',
    code: 'WORKER_FAILED',
  })
})

test('a program of Node has the worker beside the package, and ends when it has its answer', async () => {
  const bytes = (data: Uint8Array): string =>
    `Buffer.from('${Buffer.from(data).toString('base64')}', 'base64')`
  const program = `
    import { deploymentOf, parseOutpoint, PROFILES, resolveName } from 'minetree/client'
    const deployment = deploymentOf(PROFILES.local, {
      genesis: parseOutpoint('${formatOutpoint(deployment.genesis)}'),
      difficulty: ${deployment.difficulty},
      nameMarker: 'fake marker',
    })
    const tip = ${JSON.stringify(tip)}
    const evidence = { form: 'history', beef: ${bytes((history as { beef: Uint8Array }).beef)}, tip }
    const sources = [{ ask: async () => [{ index: 'A', kind: 'claimed', evidence, spent: false }] }]
    const resolved = await resolveName({ name: 'abc', deployment, chainTracker: 'scripts only', sources, workers: true })
    console.log(JSON.stringify([resolved.tip.tip, import.meta.resolve('minetree/client/check-worker')]))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: built.folder(),
    timeout: 60_000,
  })
  const file = await realpath(fileURLToPath(workerUrl()))
  expect(JSON.parse(stdout)).toEqual([tip, pathToFileURL(file).href])
})
