import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)

/** Whether there is a browser to test in. */
export const hasChromium = CHROMIUM !== undefined

const given = (globalThis as unknown as { test: typeof test }).test

/** A test in a browser; a machine without one skips it. Undefined in a bench, which runs without Vitest. */
export const inBrowser = hasChromium ? given : given?.skip

/** Flags that keep it to the page: no window, no services of its own, no calls home. */
export const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page may open another without a click: what it may do to it then is what is tested.
  '--disable-popup-blocking',
]

/** How long a page may take, on a busy machine, in milliseconds. */
const PATIENCE = 110_000
/** Time passes as fast as the page lets it, and this much of it. */
const FAST_TIME = '--virtual-time-budget=5000'

/**
 * Opens a page in headless Chromium, lets its scripts run, and gives the document that came of it.
 *
 * @param options.realTime For what plays: time passes as it does, and the page is done when it has loaded.
 */
export async function documentOf(url: string, { realTime = false } = {}): Promise<string> {
  if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine')
  const profile = await mkdtemp(join(tmpdir(), 'minetree-chromium-'))
  try {
    const time = realTime ? [] : [FAST_TIME]
    const args = [...FLAGS, ...time, `--user-data-dir=${profile}`, '--dump-dom', url]
    const { stdout } = await promisify(execFile)(CHROMIUM, args, { timeout: PATIENCE })
    return stdout
  } finally {
    await rm(profile, { recursive: true, force: true })
  }
}

/** What a page has said: the JSON in the element with this id, of a document as {@link documentOf} gives it. */
export function saidIn(page: string, id: string): unknown {
  return JSON.parse(new RegExp(` id="${id}"[^>]*>([^<]*)<`).exec(page)?.[1] ?? 'null')
}

/**
 * Serves a page that says something in the element `said`, and opens it. The page is loaded once it has fetched `/done`, if it
 * has an image at `/held`.
 */
export async function saidByPage(
  answer: (path: string, response: ServerResponse) => void | Promise<void>,
): Promise<unknown> {
  let done = (): void => undefined
  const isDone = new Promise<void>((ready) => (done = ready))
  const site = createServer(async ({ url: path = '/' }: IncomingMessage, response) => {
    if (path === '/done') done()
    if (path === '/held') await isDone
    await answer(path, response)
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  try {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
    return saidIn(await documentOf(url, { realTime: true }), 'said')
  } finally {
    site.closeAllConnections()
    site.close()
  }
}
