import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { packageFolder } from '../src/server/config/package-info.js'
import { median, timed } from './support.js'

const ROUNDS = 9
const KIB = 1024
/** The most bytes, compressed, beyond the SDK: what resolves names, and all of the client with its workers. */
const MOST = { resolving: 25 * KIB, client: 40 * KIB }
/** The most bytes on disk of what an installation adds to the SDK. */
const MOST_INSTALLED = 10_000_000

const CLIENT = join(packageFolder(), 'packages/client')
const run = promisify(execFile)

/** What a program imports that resolves names (docs/resolving.md). */
const RESOLVING =
  "export { deploymentOf, HttpNameSource, LookupNameSource, PROFILES, resolveName } from 'minetree-client'"

/**
 * The size of the package of the client as a bundler puts it into a page, minified and compressed and without the SDK; what it
 * takes on disk; and the time that Node takes to import it, by turns with importing the SDK, and nothing.
 */
export async function* bundles(): AsyncGenerator<string> {
  await run(process.execPath, [join(CLIENT, 'build.mjs')])
  const entries = entriesOf(CLIENT)
  const ofClient = entries.filter(([path]) => !/^\.\/(?:identity|mining|publish)/.test(path))
  const shown = (bytes: number, most?: number): string =>
    `${bytes} bytes compressed${most === undefined ? '' : ` (wanted: at most ${most})`}`

  const resolving = await sizeOf({ stdin: { contents: RESOLVING, resolveDir: CLIENT } })
  yield `a program that resolves names, beyond the SDK: ${shown(resolving, MOST.resolving)}`
  for (const [path, file] of entries)
    yield `${join('minetree-client', path)}: ${shown(await sizeOf({ entryPoints: [file] }))}`
  // An entry and its workers share modules.
  const client = await sizeOf({ entryPoints: ofClient.map(([, file]) => file), splitting: true })
  yield `all of the client, with its workers: ${shown(client, MOST.client)}`
  yield `on disk: ${bytesIn(CLIENT, ['dist', 'package.json', 'README.md', 'LICENSE'])} bytes (wanted: at most ${MOST_INSTALLED})`

  const programs = {
    nothing: '0',
    'the SDK': "import '@bsv/sdk'",
    client: "import 'minetree-client'",
    mining: "import 'minetree-client/mining'",
    publish: "import 'minetree-client/publish'",
  }
  const times: Record<string, number[]> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, program] of Object.entries(programs)) {
      const args = ['--input-type=module', '-e', program]
      const time = await timed(async () => await run(process.execPath, args, { cwd: CLIENT }))
      times[name] ??= []
      times[name].push(time)
    }
  }
  const time = (name: string): number => median(times[name] ?? [])
  const sdk = time('the SDK') - time('nothing')
  yield `importing the SDK takes ${sdk.toFixed(0)} ms (medians of ${ROUNDS})`
  for (const name of ['client', 'mining', 'publish'])
    yield `importing ${name}: ${(time(name) - time('the SDK')).toFixed(0)} ms more`
}

/** The modules that a package exports, by path. */
function entriesOf(folder: string): [path: string, file: string][] {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>
  }
  const modules = Object.entries(exports).filter(([path]) => path !== './package.json')
  return modules.map(([path, { default: file }]) => [path, join(folder, file)])
}

/** The size of a bundle for browsers, minified and compressed, all of its files together. */
async function sizeOf(bundle: Parameters<typeof build>[0]): Promise<number> {
  const { outputFiles } = await build({
    ...{ bundle: true, minify: true, format: 'esm', target: 'es2022', write: false, logLevel: 'error' },
    ...{ external: ['@bsv/sdk', 'node:*'], outdir: 'out', ...bundle },
  })
  const files = (outputFiles ?? []).filter(({ path }) => basename(path).endsWith('.js'))
  return files.reduce((sum, { contents }) => sum + gzipSync(contents).length, 0)
}

/** The bytes of files and folders below one. */
function bytesIn(folder: string, names: string[]): number {
  const files = names.flatMap((name) => {
    const path = join(folder, name)
    if (statSync(path).isFile()) return [path]
    const entries = readdirSync(path, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  })
  return files.reduce((sum, file) => sum + statSync(file).size, 0)
}
