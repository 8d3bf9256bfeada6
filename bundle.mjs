import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'
import { build } from 'esbuild'
import { licencesOf } from './licences.mjs'

// Bundles the programs that run, each into one file: `node bundle.mjs --outdir=dist/cli`. A process that loads one file instead
// of a thousand starts in a third of the time. The modules in `dist/src`, which other packages import, remain as they are.

const ROOT = import.meta.dirname

/** The command line, and what runs in threads and processes of its own: a module beside each finds it as `./<name>.js`. */
const PROGRAMS = [
  'src/cli/main.ts',
  'src/server/writer/submission-worker.ts',
  'src/server/writer-worker.ts',
  'src/client/check-worker.ts',
]
/** Those that are small, as modules. */
const MODULES = ['src/mining/search/search-worker.ts', 'src/server/images/image-process.ts']
/** What runs a program: it is put under the name of each. */
const START = 'src/cli/start.ts'

/** Left to npm, and loaded when they are needed: binaries, and libraries that few processes load. */
const INSTALLED = ['knex', 'libsql', 'mongodb', 'mysql2', 'pino-pretty', 'undici']

/** What libraries load and nothing here uses, by the files that load it, and what is there instead. */
const UNUSED = [
  // Uploads are limited and read by `request-body`, and queries by `node:querystring`.
  { from: /\/express\/lib\//, path: /^(?:body-parser|qs)$/, contents: 'module.exports = {}' },
  // 2,500 types. Express looks up those that responses name by their extension, and whether a type has a character set.
  {
    from: /\/mime-types\//,
    path: /^mime-db$/,
    contents: `module.exports = {
      'application/json': { charset: 'UTF-8', extensions: ['json'] },
      'text/html': { extensions: ['html'] },
      'text/plain': { extensions: ['text'] },
    }`,
  },
  // Metrics have no exemplars.
  { from: /\/prom-client\//, path: /^@opentelemetry\/api$/, contents: 'module.exports = {}' },
  // It warns developers; to say where, V8 keeps the place of each line of a program, a mebibyte.
  {
    from: /./,
    path: /^depd$/,
    contents:
      'module.exports = () => Object.assign(() => {}, { function: (called) => called, property() {} })',
  },
  // Messages are in English.
  { from: /\/zod\/v4\//, path: /locales\/index\.js$/, contents: 'export {}' },
]

const leaveOut = {
  name: 'leave out',
  setup({ onResolve, onLoad }) {
    for (const [index, { from, path }] of UNUSED.entries())
      onResolve({ filter: path }, ({ importer }) =>
        from.test(importer) ? { path: String(index), namespace: 'unused' } : undefined,
      )
    onLoad({ filter: /.*/, namespace: 'unused' }, ({ path }) => ({ contents: UNUSED[path].contents }))
    // Each in a module of its own: imports of what is outside a bundle would all run at its start.
    onResolve({ filter: new RegExp(`^(?:${INSTALLED.join('|')})(?:/|$)`) }, ({ path, namespace }) =>
      namespace === 'installed' ? { path, external: true } : { path, namespace: 'installed' },
    )
    onLoad({ filter: /.*/, namespace: 'installed' }, ({ path }) => ({
      contents: `module.exports = require('${path}')`,
    }))
  },
}

/**
 * Bundles programs into a folder. Names stay readable in stack traces, and lines are short: V8 keeps the text as long as the program
 * runs, so it is without spaces. Returns the files that are in them.
 */
async function bundle(entryPoints, outdir, options) {
  const { metafile } = await build({
    ...{ absWorkingDir: ROOT, entryPoints, outdir, entryNames: '[name]', logLevel: 'warning' },
    ...{ bundle: true, platform: 'node', target: 'node20.12', legalComments: 'none', metafile: true },
    ...{ minifyWhitespace: true, lineLimit: 160, plugins: [leaveOut], ...options },
  })
  return Object.keys(metafile.inputs)
}

const { values } = parseArgs({ options: { outdir: { type: 'string', default: 'dist/cli' } } })
const outdir = resolve(values.outdir)
rmSync(outdir, { recursive: true, force: true })

const inModules = await bundle([...MODULES, START], outdir, { format: 'esm' })
const inPrograms = await bundle(PROGRAMS, outdir, {
  format: 'cjs',
  outExtension: { '.js': '.program.cjs' },
  // It is read a byte for a character.
  charset: 'ascii',
  define: { 'import.meta.url': 'moduleUrl', 'import.meta.dirname': '__dirname' },
  supported: { 'dynamic-import': false },
  banner: {
    js: `(function (require, __filename, __dirname) { 'use strict'; const module = {}, moduleUrl = require('node:url').pathToFileURL(__filename).href`,
  },
  footer: { js: '})' },
})
for (const program of PROGRAMS) {
  const name = basename(program, '.ts')
  const path = join(outdir, name)
  const filename = `${name}.program.cjs`
  const text = readFileSync(join(outdir, filename))
  const data = new Script(text.toString('latin1'), { filename }).createCachedData()
  const hash = createHash('sha256').update(text).update(data).digest()
  writeFileSync(`${path}.${process.arch}-${cachedDataVersionTag()}.cache`, Buffer.concat([hash, data]))
  copyFileSync(join(outdir, 'start.js'), `${path}.js`)
}
rmSync(join(outdir, 'start.js'))
writeFileSync(join(outdir, 'LICENSES.txt'), licencesOf([...inModules, ...inPrograms], ROOT))
