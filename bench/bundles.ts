import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { packageFolder } from '../src/server/config/package-info.js'

const KIB = 1024
/** The most compressed bytes besides the SDK: for resolving names, and with `verifiedFetch` and the worker of a site. */
const MOST = { resolving: 25 * KIB, fetching: 40 * KIB }

const CLIENT = join(packageFolder(), 'packages/client')
const run = promisify(execFile)

/** The imports of a program that resolves names at servers (docs/apps.md). */
const RESOLVING = ['deploymentOf', 'PROFILES', 'resolveName']
/** The further imports of one that fetches verified content, as far as the package has them. */
const FETCHING = ['verifiedFetch', 'serveVerifiedSite']

/** The size of the client's package in a page: bundled, minified and compressed, without the SDK. */
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
}

/** The modules that a package exports, by path. */
function entriesOf(folder: string): [path: string, file: string][] {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>
  }
  const modules = Object.entries(exports).filter(([path]) => path !== './package.json')
  return modules.map(([path, { default: file }]) => [path, join(folder, file)])
}

/** A bundle for browsers, of some exports of the client, or of modules. */
type Bundle = { names: string[] } | { files: string[] }

/** The size of all files of a bundle, minified and compressed. */
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
