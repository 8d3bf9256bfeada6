import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

// Bundles the scripts of pages, each into one file, and the style sheet: `node bundle-pages.mjs --outdir=dist/pages`. What only a
// click needs is a file of its own, without what the first one has already: no page waits for two files in a row.

const ROOT = import.meta.dirname
const ENTRIES = [
  'src/explorer/mine-page/main.ts',
  'src/explorer/mine-page/mining.ts',
  'src/explorer/my-page/my.ts',
  'src/mining/search/search-worker.ts',
  'src/explorer/islands/explorer.ts',
  'src/explorer/islands/verify.ts',
  'src/explorer/islands/verified-site.ts',
  'src/explorer/islands/verified-worker.ts',
  'src/explorer/style.css',
]

const SDK = /[/\\]@bsv[/\\]sdk[/\\]/

/** The SDK does not declare that loading its modules does nothing, which is so: those that nothing is used of are left out. */
const leaveOutUnused = {
  name: 'leave out unused modules of the SDK',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /.*/ }, async ({ path, pluginData, importer, kind, resolveDir }) => {
      const isOfSdk = path.startsWith('@bsv/sdk') || SDK.test(importer)
      if (pluginData === 'resolving' || kind !== 'import-statement' || !isOfSdk) return undefined
      const found = await resolve(path, { importer, kind, resolveDir, pluginData: 'resolving' })
      return { ...found, sideEffects: false }
    })
  },
}

const { values } = parseArgs({ options: { outdir: { type: 'string', default: 'dist/pages' } } })
const outdir = resolve(values.outdir)
await build({
  ...{ absWorkingDir: ROOT, entryPoints: ENTRIES, outdir, entryNames: '[name]' },
  ...{ bundle: true, minify: true, format: 'esm', target: 'es2022', logLevel: 'warning' },
  ...{ external: ['node:*'], plugins: [leaveOutUnused] },
})

// Compressed as well as it can be, once and for all: `page-files.ts` serves what a browser takes.
for (const name of readdirSync(outdir).filter((each) => /\.(?:js|css)$/.test(each))) {
  const body = readFileSync(join(outdir, name))
  writeFileSync(join(outdir, `${name}.br`), brotliCompressSync(body))
  writeFileSync(join(outdir, `${name}.gz`), gzipSync(body, { level: 9 }))
}
