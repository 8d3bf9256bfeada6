import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)

/** Whether there is a browser to test in; a machine without one skips those tests. */
export const hasChromium = CHROMIUM !== undefined

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
    const { stdout } = await promisify(execFile)(CHROMIUM, args, { timeout: 60_000 })
    return stdout
  } finally {
    await rm(profile, { recursive: true, force: true })
  }
}

/** What a page has said: the JSON in the element with this id, of a document as {@link documentOf} gives it. */
export function saidIn(page: string, id: string): unknown {
  return JSON.parse(new RegExp(` id="${id}"[^>]*>([^<]*)<`).exec(page)?.[1] ?? 'null')
}
