import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import puppeteer from 'puppeteer-core'
import type { Deployment } from '../backend/src/protocol/mint.js'
import { CHROMIUM, FLAGS } from '../test/support/browser/chromium.js'
import { at, proofOf } from '../test/support/client/name-proofs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../test/support/protocol/fake-chain.js'
import { HostileServer } from '../test/system/hostile/hostile-server.js'
import { LIVE_CODE_SIZE, median } from './support.js'
import { type VerificationTask, type VerificationTimes, verifyByTurns } from './verification-turns.js'

const SPENDS = 200
const TURNS = 15
const MOST = 1.3

/**
 * What it costs the client to check a proof of 200 spends with nodes of the live covenant's size, against
 * `Transaction.verify` of the SDK over the same transactions, from the same bytes; by turns, in Node and in a page. In blocks,
 * the SDK verifies each of them; in none, one verification goes through all their scripts. Beside that, what the client checks
 * and the SDK does not: that each is a mint, and the next.
 */
export async function* proofCheck(): AsyncGenerator<string> {
  const { chain, transactions, mints } = line()
  const { deployment } = chain
  for (const [what, unproven] of [
    ['in blocks', []],
    ['in no block', mints],
  ] as const) {
    const proof = proofOf(transactions, { unproven })
    const task = {
      name: 'n'.repeat(SPENDS),
      proof,
      deployment,
      isInBlocks: unproven.length === 0,
      turns: TURNS,
    }
    const shown = `${SPENDS} spends ${what} (${(proof.length / 1e6).toFixed(1)} MB)`
    yield* lines(`${shown} in Node`, await verifyByTurns(task))
    yield* lines(`${shown} in Chromium`, await verifyInPage(task))
  }
}

function* lines(what: string, times: VerificationTimes): Generator<string> {
  const { own, portable, sdk } = times
  const milliseconds = (turns: number[]): string => `${median(turns).toFixed(0)} ms`
  const ratio = (turns: number[]): string => (median(turns) / median(sdk)).toFixed(2)
  yield `${what}: the client ${milliseconds(own)}, Transaction.verify ${milliseconds(sdk)} (medians of ${TURNS})`
  yield `ratio ${ratio(own)}; with our own SHA-256 ${ratio(portable)} (wanted: at most ${MOST})`
}

/** A line of mints, each from the node that the one before left for it, paid for by coins that any push opens. */
function line(): { chain: FakeChain; transactions: FakeTransaction[]; mints: FakeTransaction[] } {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const outputs = Array.from({ length: SPENDS }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ inputs: [], outputs })
  const mints = outputs.map((_, vout) => chain.mint('n'.repeat(vout + 1), { funding: [at(purse, vout)] }))
  return { chain, transactions: [chain.genesis, purse, ...mints], mints }
}

/** Verifies by turns in a page of headless Chromium, with everything bundled as an app would. */
async function verifyInPage({ proof, deployment, ...task }: VerificationTask): Promise<VerificationTimes> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./verification-turns.js', import.meta.url))],
    ...{ bundle: true, minify: true, format: 'esm', target: 'es2022', write: false, logLevel: 'silent' },
    external: ['node:*'],
  })
  const files = new Map<string, [type: string, body: Uint8Array | string]>([
    ['/', ['text/html', '<!doctype html><title>a page</title>']],
    ['/turns.js', ['text/javascript', outputFiles[0]?.contents ?? '']],
    ['/proof', ['application/octet-stream', proof]],
  ])
  const server = await HostileServer.open(({ path }, response) => {
    const [type, body] = files.get(path) ?? ['text/plain', '']
    response.writeHead(200, { 'Content-Type': type }).end(body)
  })
  const browser = await puppeteer.launch({ executablePath: CHROMIUM ?? '', args: FLAGS })
  try {
    const page = await browser.newPage()
    await page.goto(server.url)
    return (await page.evaluate(
      `(${IN_PAGE})(${JSON.stringify({ ...task, deployment: plain(deployment) })})`,
    )) as VerificationTimes
  } finally {
    await browser.close()
    await server.close()
  }
}

function plain({ marker, ...deployment }: Deployment): object {
  return { ...deployment, marker: [...marker] }
}

/** What the page does. As text: it runs in the browser, with nothing of this file. */
const IN_PAGE = `async ({ deployment, ...task }) => {
  const { verifyByTurns } = await import('/turns.js')
  const proof = new Uint8Array(await (await fetch('/proof')).arrayBuffer())
  return await verifyByTurns({
    ...task, proof, deployment: { ...deployment, marker: Uint8Array.from(deployment.marker) },
  })
}`
