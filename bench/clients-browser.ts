import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { build } from 'esbuild'
import puppeteer, { type Browser } from 'puppeteer-core'
import { CHROMIUM, FLAGS } from '../test/support/browser/chromium.js'
import { RESOLVE_ENV } from '../test/system/hostile/attacks/resolve.js'
import { HostileServer } from '../test/system/hostile/hostile-server.js'
import { peakMemory } from '../test/system/hostile/run-client.js'

/** What became of a page that resolved a name. */
export interface PageEnd {
  /** In milliseconds. */
  took: number
  /** The longest time in which the page could do nothing else, in milliseconds. */
  blocked: number
  /** The most memory that a process of a page had, in bytes. */
  peak: number
  /** Whether it found the truth; undefined where it was stopped before its end. */
  found: boolean | undefined
}

/** Chromium, and a page in it with the client bundled as an app would. */
export class ClientPage {
  private browser: Browser | undefined

  private constructor(
    private readonly server: HostileServer,
    private readonly profile: string,
  ) {}

  /** @param main The compiled `src/cli/main.js` of the package whose client is bundled. */
  static async open(main: string): Promise<ClientPage> {
    if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine')
    const files = await bundled(main)
    const server = await HostileServer.open(({ path }, response) => {
      const file = files.get(basename(path))
      response.writeHead(200, { 'Content-Type': file === undefined ? 'text/html' : 'text/javascript' })
      response.end(file ?? '<!doctype html><title>a page</title>')
    })
    const profile = await mkdtemp(join(tmpdir(), 'minetree-page-'))
    return new ClientPage(server, profile)
  }

  async close(): Promise<void> {
    await this.browser?.close()
    await this.server.close()
    await rm(this.profile, { recursive: true, force: true })
  }

  /** Resolves a name by these indexes, in a page of its own. */
  async resolve(asked: { urls: string[]; tip: string; cap: number }): Promise<PageEnd> {
    const { urls, tip, cap } = asked
    this.browser ??= await this.launched()
    const context = await this.browser.createBrowserContext()
    const page = await context.newPage()
    await page.goto(this.server.url)
    const began = performance.now()
    let peak = 0
    const watch = setInterval(() => {
      void this.rendererPeak().then((now) => {
        peak = Math.max(peak, now)
      })
    }, 100)
    const said = page.evaluate(`(${String(IN_PAGE)})(${JSON.stringify({ urls, env: RESOLVE_ENV })})`)
    const stop = new AbortController()
    try {
      const ended = await Promise.race([
        said as Promise<{ tip?: string; blocked: number }>,
        wait(cap, undefined, { signal: stop.signal }),
      ])
      const took = performance.now() - began
      if (ended === undefined) {
        // A page that does nothing else cannot be closed, either.
        this.browser.process()?.kill('SIGKILL')
        this.browser = undefined
        return { took, blocked: took, peak, found: undefined }
      }
      return { took, blocked: ended.blocked, peak, found: ended.tip === tip }
    } catch {
      // A page that has had too much is gone.
      return { took: performance.now() - began, blocked: 0, peak, found: undefined }
    } finally {
      stop.abort()
      clearInterval(watch)
      said.catch(() => undefined)
      if (this.browser !== undefined) await context.close().catch(() => undefined)
    }
  }

  private async launched(): Promise<Browser> {
    // Indexes are on ports of their own, and say nothing of other origins.
    const args = [...FLAGS, '--disable-web-security', `--user-data-dir=${this.profile}`]
    return await puppeteer.launch({ executablePath: CHROMIUM ?? '', args })
  }

  /** The most memory of any renderer of this browser, in bytes. */
  private async rendererPeak(): Promise<number> {
    const own = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))
    const peaks = await Promise.all(
      own.map(async (pid) => {
        const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
        const isOurs = line.includes('--type=renderer') && line.includes(this.profile)
        return isOurs ? peakMemory(Number(pid)) : 0
      }),
    )
    return Math.max(0, ...peaks)
  }
}

/** The client and whatever workers it starts, each bundled, by file name. */
async function bundled(main: string): Promise<Map<string, Uint8Array>> {
  const folder = join(dirname(main), '../client')
  const workers = (await readdir(folder)).filter((name) => /worker\.js$/.test(name))
  const { outputFiles } = await build({
    entryPoints: ['index.js', ...workers].map((name) => join(folder, name)),
    ...{ bundle: true, format: 'esm', target: 'es2022', write: false, outdir: '/', logLevel: 'silent' },
    external: ['node:*'],
  })
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]))
}

/** What the page does. As text: it runs in the browser, with nothing of this file. */
const IN_PAGE = `async ({ urls, env }) => {
  const client = await import('/index.js')
  const deployment = client.deploymentOf(client.PROFILES.local, {
    genesis: client.parseOutpoint(env.GENESIS), difficulty: Number(env.DIFFICULTY), nameMarker: env.NAME_MARKER,
  })
  let blocked = 0
  let last = performance.now()
  const ticking = setInterval(() => {
    const now = performance.now()
    blocked = Math.max(blocked, now - last)
    last = now
  }, 5)
  try {
    const { tip } = await client.resolveName({ name: 'abc', deployment, chainTracker: 'scripts only', sources: urls })
    await new Promise((done) => setTimeout(done, 50))
    return { tip: client.formatOutpoint(tip.tip), blocked }
  } catch (error) {
    await new Promise((done) => setTimeout(done, 50))
    return { error: String(error), blocked }
  } finally {
    clearInterval(ticking)
  }
}`
