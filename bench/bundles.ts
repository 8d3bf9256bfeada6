import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { packageFolder } from '../src/server/config/package-info.js'
import { median, timed } from './support.js'

const ROUNDS = 9
const KIB = 1024
/** The most bytes beyond the SDK, compressed: of what resolves names, and with `verifiedFetch` and the worker of a site. */
const MOST = { resolving: 25 * KIB, fetching: 40 * KIB }
/** The most bytes on disk of what an installation adds to the SDK. */
const MOST_INSTALLED = 10_000_000

const CLIENT = join(packageFolder(), 'packages/client')
const run = promisify(execFile)

/** What a program imports that resolves names at servers (docs/apps.md). */
const RESOLVING = ['deploymentOf', 'PROFILES', 'resolveName']
/** What one imports beside it that fetches verified content, as far as the package has it. */
const FETCHING = ['verifiedFetch', 'serveVerifiedSite']

/**
 * The size of the package of the client as a bundler puts it into a page, minified and compressed and without the SDK; what it
 * takes on disk; and the time that Node takes to import it, by turns with importing the SDK, and nothing.
 */
export async function* bundles(): AsyncGenerator<string> {
  await run(process.execPath, [join(CLIENT, 'build.mjs')])
  const entries = entriesOf(CLIENT)
  const { '.': main = '' } = Object.fromEntries(entries)
  const exported = Object.keys((await import(pathToFileURL(main).href)) as object)

  yield `what resolves names: ${await sizeOf({ names: RESOLVING }, MOST.resolving)}`
  const fetching = FETCHING.filter((name) => exported.includes(name))
  if (fetching.length > 0)
    yield `with ${fetching.join(' and ')}: ${await sizeOf({ names: [...RESOLVING, ...fetching] }, MOST.fetching)}`
  for (const [path, file] of entries)
    yield `all of ${join('minetree-client', path)}: ${await sizeOf({ files: [file] })}`
  // An entry and its workers share modules.
  const client = entries.filter(([path]) => !/^\.\/(?:identity|mining|publish)/.test(path))
  yield `the client with the worker of its checks: ${await sizeOf({ files: client.map(([, file]) => file) })}`
  const files = ['dist', 'package.json', 'README.md', 'LICENSE']
  yield `on disk: ${bytesIn(CLIENT, files)} bytes (wanted: at most ${MOST_INSTALLED})`

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

/** A bundle for browsers: of some exports of the client, or of modules. */
type Bundle = { names: string[] } | { files: string[] }

/** How many bytes a bundle has, minified and compressed, all of its files together. */
async function sizeOf(bundle: Bundle, most?: number): Promise<string> {
  const source =
    'names' in bundle
      ? { stdin: { contents: `export { ${bundle.names} } from 'minetree-client'`, resolveDir: CLIENT } }
      : { entryPoints: bundle.files, splitting: true }
  const { outputFiles = [] } = await build({
    ...{ bundle: true, minify: true, format: 'esm', target: 'es2022', write: false, logLevel: 'error' },
    ...{ external: ['@bsv/sdk', 'node:*'], outdir: 'out', ...source },
  })
  const size = outputFiles.reduce((sum, { text }) => sum + gzipSync(text, { level: 9 }).length, 0)
  return `${size} bytes compressed${most === undefined ? '' : ` (wanted: at most ${most})`}`
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
