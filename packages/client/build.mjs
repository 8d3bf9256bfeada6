import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { licencesOf } from '../../licences.mjs'

// Builds the client's package from the sources of the whole package: `node build.mjs --outdir=dist`. Its entries are those of
// `minetree` that run in browsers. Libraries are bundled, except the SDK, whose objects pass between this package and its caller.

const ROOT = resolve(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { outdir: { type: 'string', default: 'dist' } } })
const outdir = resolve(import.meta.dirname, values.outdir)

/** The sources of the entries by the names of these: `index` for `minetree/client`, `mining` for `minetree/mining`. */
function entries() {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const ours = Object.entries(exports).filter(([path]) =>
    /^\.\/(?:client|identity|mining|payments|publish)(?:\/|$)/.test(path),
  )
  return Object.fromEntries(
    ours.map(([path, { types }]) => {
      const source = types.replace('./dist/', '').replace(/\.d\.ts$/, '.ts')
      return [path === './client' ? 'index' : basename(path), join(ROOT, source)]
    }),
  )
}

rmSync(outdir, { recursive: true, force: true })
const { metafile } = await build({
  ...{ absWorkingDir: ROOT, entryPoints: entries(), outdir, logLevel: 'warning', metafile: true },
  // The modules of an entry are in one file, with shared ones in files beside it. They stay readable.
  ...{ bundle: true, splitting: true, format: 'esm', target: 'es2022', legalComments: 'none' },
  // Fields are set where they get a value, and not declared before: this is shorter, and makes no difference here.
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: false } },
  // Both for Node and for browsers.
  ...{ platform: 'neutral', mainFields: ['module', 'main'], external: ['@bsv/sdk', 'node:*'] },
})
writeFileSync(join(outdir, 'LICENSES.txt'), licencesOf(Object.keys(metafile.inputs), ROOT))

const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
const options = ['-p', import.meta.dirname, '--outDir', join(outdir, 'types')]
execFileSync(process.execPath, [compiler, ...options], { stdio: 'inherit' })
