import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import { saidIn, useBrowser } from '../../support/browser/browser.js'
import { inBrowser } from '../../support/browser/chromium.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { serving } from '../../support/server/connections.js'

const built = useBuiltCli()
const browser = useBrowser()

/** The modules as built, in a page without a bundler. */
const PAGE = `<!doctype html><title>search</title>
<p id="said"></p>
<script type="importmap">{ "imports": { "@bsv/sdk": "/node_modules/@bsv/sdk/dist/esm/mod.js" } }</script>
<script type="module">
  import { searchNonce } from '/dist/src/mining/search/search-nonce.js'
  const options = { seed: new Uint8Array(32), character: 'a' }
  const found = async (more) => Array.from((await searchNonce({ ...options, ...more })).nonce)
  const nameOf = (error) => (error.name === 'SearchError' ? error.code : error.name)
  const endOf = (more) => searchNonce({ ...options, ...more }).then(() => 'found', nameOf)
  const run = async () => ({
    inWorkers: await found({ difficulty: 16 }),
    inPage: await found({ difficulty: 12, workers: 0 }),
    withSimd: await endOf({ difficulty: 8, workers: 0, kernel: 'simd' }),
    cancelled: await endOf({ difficulty: 64, signal: AbortSignal.timeout(500) }),
    broken: await endOf({ difficulty: 64, workerUrl: '/nowhere.js' }),
  })
  run().catch(String).then((said) => {
    document.getElementById('said').textContent = JSON.stringify(said)
  })
</script>`

/** What the page said, served with a policy for its scripts. */
async function saidUnder(scripts: string): Promise<Record<string, unknown>> {
  const site = await serving(async ({ url: path = '/' }, response) => {
    response.setHeader('Content-Security-Policy', `script-src 'self' 'unsafe-inline' ${scripts}`)
    if (path === '/') return void response.setHeader('Content-Type', 'text/html').end(PAGE)
    const file = path.endsWith('.js')
      ? await readFile(join(built.folder(), path)).catch(() => undefined)
      : undefined
    response.writeHead(file === undefined ? 404 : 200, { 'Content-Type': 'text/javascript' }).end(file)
  })
  const { page } = await browser.open(site.url)
  return (await saidIn(page)) as Record<string, unknown>
}

function isSolution(nonce: unknown, difficulty: number): boolean {
  const solution = { seed: new Uint8Array(32), character: 'a', nonce: Uint8Array.from(nonce as number[]) }
  return solution.nonce.length === 22 && meetsDifficulty(proofOfWork(solution), difficulty)
}

describe('the same search in a browser', () => {
  inBrowser('finds nonces in workers and in the page, is cancelled, and says what fails', async () => {
    const { inWorkers, inPage, ...rest } = await saidUnder("'wasm-unsafe-eval'")
    expect(isSolution(inWorkers, 16)).toBe(true)
    expect(isSolution(inPage, 12)).toBe(true)
    expect(rest).toEqual({ withSimd: 'found', cancelled: 'TimeoutError', broken: 'WORKER_FAILED' })
  })

  inBrowser('does without WebAssembly where the policy of the page forbids it', async () => {
    const { inWorkers, inPage, withSimd } = await saidUnder('')
    expect(withSimd).toBe('UNAVAILABLE')
    expect(isSolution(inWorkers, 16)).toBe(true)
    expect(isSolution(inPage, 12)).toBe(true)
  })
})
