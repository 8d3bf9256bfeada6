import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { at, namedWorld, outpointBeef, proofOf, recordsOf } from '../../support/client/name-proofs.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { serving } from '../../support/server/connections.js'

// The client bundled into a page, beside an index that is costly to check; and its worker, bundled as an entry of its own.

const ROOT = resolve(import.meta.dirname, '../../..')
const ESBUILD = join(ROOT, 'node_modules/esbuild/bin/esbuild')

const { deployment, line, mints, origin, tip, way } = namedWorld()
const genesis = formatOutpoint(deployment.genesis)

/** A mint in no block whose coin takes a hundred milliseconds for each of a hundred steps. */
const costly = (() => {
  // OP_1, OP_DUP OP_CAT as often as not; OP_SHA256 of a copy, again and again.
  const grow = new Array(20).fill([0x76, 0x7e]).flat()
  const hash = new Array(250).fill([0x76, 0xa8, 0x75]).flat()
  const chain = new FakeChain()
  const coin = chain.spend({
    inputs: [],
    outputs: [{ satoshis: 1000, lockingScript: Uint8Array.from([0x51, ...grow, ...hash]) }],
  })
  const mint = chain.mint('a', { funding: [at(coin, 0)] })
  const all = [chain.genesis, coin, mint]
  return {
    genesis: formatOutpoint(chain.deployment.genesis),
    proof: proofOf(all, { unproven: [mint] }),
  }
})()

const PAGE = `<!doctype html><title>resolve</title><p id="said"></p>
<script type="module" src="/page.js"></script>`

const PROGRAM = `
import {
  deploymentOf, formatOutpoint, HttpNameSource, IndexedDbSegmentStore, parseOutpoint, PROFILES, resolveName, Segments, verifyNameProof,
} from './client.js'
const tree = (genesis) => deploymentOf(PROFILES.local, {
  genesis: parseOutpoint(genesis), difficulty: ${deployment.difficulty}, nameMarker: 'fake marker',
})
const base = { name: 'abc', deployment: tree('${genesis}'), chainTracker: { isValidRootForHeight: async () => true } }
const summary = ({ tip, proven, reports }) => ({ tip: formatOutpoint(tip.tip), proven, verdicts: reports.map((each) => each.verdict) })
const endOf = (promise) => promise.then(summary, (error) => error.code ?? String(error))
const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer())
const source = (index, evidence) => ({ index, ask: async () => [{ index, kind: 'claimed', evidence, spent: false }] })
const again = async (more) => {
  const paths = []
  const counted = (url, init) => {
    paths.push(new URL(url).pathname)
    return fetch(url, init)
  }
  const sources = [new HttpNameSource({ url: location.origin, fetch: counted })]
  const end = await endOf(resolveName({ ...base, ...more, sources, segments: new Segments({ store: new IndexedDbSegmentStore() }) }))
  return { ...end, paths }
}
const run = async () => {
  const sources = [location.origin]
  const hostile = source('hostile', {
    form: 'proofs', origin: parseOutpoint('${genesis}'), tip: parseOutpoint('${genesis}'),
    proof: await bytes('/costly'), provenance: new Uint8Array(),
  })
  let turns = 0
  const timer = setInterval(() => turns++)
  const check = { proof: await bytes('/costly'), name: 'a', deployment: tree('${costly.genesis}'), chainTracker: base.chainTracker }
  const refused = await verifyNameProof(check).catch((error) => error.code)
  clearInterval(timer)
  return {
    inPage: await endOf(resolveName({ ...base, sources })),
    inWorker: await endOf(resolveName({ ...base, sources, workerUrl: '/check-worker.js' })),
    beside: await endOf(resolveName({ ...base, sources: [hostile, ...sources], workerUrl: '/check-worker.js' })),
    broken: await endOf(resolveName({ ...base, sources, workerUrl: '/nowhere.js' })),
    hanging: await endOf(resolveName({ ...base, sources, workerUrl: '/hanging.js', timeout: 1500 }).catch((error) => { throw error.reports[0].error })),
    kept: await again({ workerUrl: '/check-worker.js' }),
    again: await again({}),
    againInWorker: await again({ workerUrl: '/check-worker.js' }),
    refused, hasTurns: turns > 5,
  }
}
run().catch(String).then((said) => {
  document.getElementById('said').textContent = JSON.stringify(said)
})`

const browser = useBrowser()
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'minetree-resolve-'))
  const bundle = async (from: string, to: string): Promise<void> => {
    const options = ['--bundle', '--format=esm', '--target=es2022', '--log-level=error']
    await promisify(execFile)(ESBUILD, [join(ROOT, from), ...options, `--outfile=${join(folder, to)}`])
  }
  await bundle('src/client/index.ts', 'client.js')
  await bundle('src/client/check-worker.ts', 'check-worker.js')
})
afterAll(async () => await rm(folder, { recursive: true }))

const send = (response: ServerResponse, type: string, body: string | Uint8Array): void =>
  void response.setHeader('Content-Type', type).end(body)

const RECORD = '/svc/names/abc'
const PROOF = '/svc/names/proof/abc'
const PROVENANCE = `/svc/gateway/provenance/${formatOutpoint({ txid: mints.abc.txid, vout: 2 })}`

/** What is answered for each path. */
const ANSWERS: Record<string, (response: ServerResponse) => void> = {
  '/': (response) => send(response, 'text/html', PAGE),
  '/page.js': (response) => send(response, 'text/javascript', PROGRAM),
  '/hanging.js': (response) => send(response, 'text/javascript', "postMessage({ kind: 'ready' }); for (;;);"),
  '/costly': (response) => send(response, 'application/octet-stream', costly.proof),
  [RECORD]: (response) =>
    send(
      response,
      'application/json',
      JSON.stringify({
        origin: formatOutpoint(origin),
        tip: { outpoint: formatOutpoint(tip), spent: false },
      }),
    ),
  [PROOF]: (response) => send(response, 'application/octet-stream', proofOf(line)),
  [PROVENANCE]: (response) => send(response, 'application/octet-stream', outpointBeef(tip, recordsOf(way))),
}

inBrowser('a name is resolved in a page and in workers, and what hangs or costs is ended', async () => {
  const found = { tip: formatOutpoint(tip), proven: true }
  const site = await serving(async ({ url = '/' }, response) => {
    const [path = ''] = url.split('?')
    const answer = ANSWERS[path]
    if (answer !== undefined) return answer(response)
    const file = /^\/(client|check-worker)\.js$/.test(path) ? await readFile(join(folder, path)) : undefined
    response.writeHead(file === undefined ? 404 : 200, { 'Content-Type': 'text/javascript' }).end(file)
  })
  const { page } = await browser.open(site.url)
  expect(await saidIn(page)).toEqual({
    inPage: { ...found, verdicts: ['agrees'] },
    inWorker: { ...found, verdicts: ['agrees'] },
    beside: { ...found, verdicts: ['refuted', 'agrees'] },
    broken: 'WORKER_FAILED',
    hanging: 'TIMEOUT',
    kept: { ...found, verdicts: ['agrees'], paths: [RECORD, PROOF, PROVENANCE] },
    again: { ...found, verdicts: ['agrees'], paths: [RECORD] },
    againInWorker: { ...found, verdicts: ['agrees'], paths: [RECORD] },
    // By its work, or where the processor is slow, by the time of one script.
    refused: expect.stringMatching(/^(TOO_COSTLY|SCRIPT_TIMEOUT)$/),
    hasTurns: true,
  })
})
