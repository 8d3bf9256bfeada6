import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { compareWithBare } from './gateway.js'
import { cpuRatio, roundsByTurns, speedRatio, type Target, withProcess } from './load.js'
import type { PagesReady } from './pages-server.js'

/** The wanted speed of a page, as a multiple of a bare Express handler. */
const WANTED = 0.25
/** The most compressed bytes of a page, and of the scripts and the styles that it loads. */
const MOST = { html: 60 * 1024, script: 30 * 1024, style: 30 * 1024 }
/** The scripts that pages load by themselves; the browser tests check that there are no others. */
const SCRIPTS = { 'every page': ['explorer.js'], 'the page that mines': ['explorer.js', 'main.js'] }
/** Scripts that are loaded on demand. */
const LATER = { 'the button that verifies': 'verify.js', 'what mines': 'mining.js' }

/**
 * The cost of pages over 14,000 names and 20,000 inscriptions, compared with a bare Express handler that sends the same bytes, in
 * separate processes, alternating. First as visitors get the pages, then made for each request: from what is in memory of the
 * store, and from the store alone. And their size.
 */
export async function* pages(): AsyncGenerator<string> {
  yield* withProcess('./pages-server.js', [], async function* (ready: PagesReady, server) {
    const { url, forgetful, nodes, old, txid } = ready
    yield await namesFromMemory(ready, server)
    const at = (origin: string, ...paths: string[]): { target: Target; wanted: number } => ({
      target: { origin, server, paths },
      wanted: WANTED,
    })
    const compared = (...paths: string[]) => at(url, ...paths)
    const shown = {
      home: '/',
      name: `/name/${nodes[0]}`,
      ordinal: `/ordinal/${old}`,
      tree: '/tree',
      names: '/names',
    }
    for (const [what, path] of Object.entries(shown)) {
      const html = Buffer.from(await (await fetch(url + path)).arrayBuffer())
      yield `${what}: ${html.length} bytes, ${gzipSync(html).length} compressed (wanted: at most ${MOST.html})`
    }
    const sizeOf = (file: string): number =>
      gzipSync(readFileSync(new URL(`../pages/${file}`, import.meta.url))).length
    yield `style.css: ${sizeOf('style.css')} bytes compressed (wanted: at most ${MOST.style})`
    for (const [page, files] of Object.entries(SCRIPTS)) {
      const size = files.reduce((sum, file) => sum + sizeOf(file), 0)
      yield `${page}: ${size} bytes of script compressed (wanted: at most ${MOST.script})`
    }
    for (const [what, file] of Object.entries(LATER)) {
      const sent = (ending: string): number =>
        readFileSync(new URL(`../pages/${file}${ending}`, import.meta.url)).length
      yield `${what}: ${sent('.br')} bytes over the wire with brotli, ${sent('.gz')} with gzip, ${sent('')} without`
    }
    yield* compareWithBare('express', {
      home: compared('/'),
      name: compared(...nodes.map((name) => `/name/${name}`)),
      ordinal: compared(`/ordinal/${old}`),
      inscriptions: compared('/inscriptions'),
      tree: compared('/tree'),
      transaction: compared(`/tx/${txid}`),
    })
    yield* compareWithBare('express', {
      'home, with nothing in memory': at(forgetful, '/'),
      'name, with nothing in memory': at(forgetful, ...nodes.map((name) => `/name/${name}`)),
      'ordinal, with nothing in memory': at(forgetful, `/ordinal/${old}`),
      'inscriptions, with nothing in memory': at(forgetful, '/inscriptions'),
    })
  })
}

/** Any of all names from memory, compared with any of a hundred. */
async function namesFromMemory({ url, names }: PagesReady, server: ChildProcess): Promise<string> {
  const paths = names.map((name) => `/svc/names/${name}`)
  for (const path of paths) await (await fetch(url + path)).arrayBuffer()
  const named = (count: number): Target => ({
    ...{ origin: url, server, isShuffled: true },
    paths: paths.slice(0, count),
  })
  const { all, some } = await roundsByTurns({ some: named(100), all: named(paths.length) })
  return `names from memory: of ${paths.length} ${speedRatio(all, some).toFixed(2)} times as fast as of 100 by speed, ${cpuRatio(all, some).toFixed(2)} by CPU time (wanted: 0.95)`
}
