import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdtemp, readdir, readFile, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { madeOnce } from './made-once.js'

const ROOT = resolve(import.meta.dirname, '../../..')
const SOURCES = [
  ...[
    'src',
    'backend/src',
    'package.json',
    'bundle.mjs',
    'bundle-pages.mjs',
    'licences.mjs',
    'tsconfig.json',
    'tsconfig.build.json',
  ],
  ...['build.mjs', 'package.json', 'tsconfig.json'].map((file) => `packages/client/${file}`),
]

/**
 * The package as it is installed, compiled from the sources as they are: once for as long as they stay the same, for it
 * takes a while and many tests ask. Nobody is to write into it.
 *
 * @returns where `INSTALLED_PACKAGE` is, for tests that run once more against the package as a consumer installed it.
 */
export async function builtPackage(): Promise<string> {
  if (process.env.INSTALLED_PACKAGE !== undefined) return process.env.INSTALLED_PACKAGE
  return await madeOnce({ kind: 'builds', key: await hashOfSources(), make: build })
}

/** The package of the client in the same way, with all that its tarball has. */
export async function builtClient(): Promise<string> {
  return await madeOnce({ kind: 'client-builds', key: await hashOfSources(), make: buildClient })
}

async function buildClient(folder: string): Promise<void> {
  const client = join(ROOT, 'packages/client')
  await promisify(execFile)(process.execPath, [join(client, 'build.mjs'), `--outdir=${join(folder, 'dist')}`])
  for (const file of ['package.json', 'README.md', 'LICENSE'])
    await copyFile(join(client, file), join(folder, file))
}

async function build(folder: string): Promise<void> {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(folder, 'dist')]
  await promisify(execFile)(process.execPath, args)
  const bundle = [join(ROOT, 'bundle.mjs'), `--outdir=${join(folder, 'dist/cli')}`]
  await promisify(execFile)(process.execPath, bundle)
  await buildPages(join(folder, 'dist/pages'))
  await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'))
  for (const shared of ['node_modules', 'assets']) await symlink(join(ROOT, shared), join(folder, shared))
}

async function hashOfSources(): Promise<string> {
  const hash = createHash('sha256')
  for (const source of SOURCES) {
    for (const file of await filesAt(join(ROOT, source)))
      hash.update(`${file}\0`).update(await readFile(file))
  }
  return hash.digest('hex')
}

async function filesAt(path: string): Promise<string[]> {
  if ((await stat(path)).isFile()) return [path]
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

/** Builds the scripts and the style sheet of pages, as `npm run build` does, into a folder. */
export async function buildPages(folder: string): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build:pages', '--', `--outdir=${folder}`], {
    cwd: ROOT,
  })
}

/** The files of pages as the sources have it now, for the tests of one file. */
export async function builtPages(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-pages-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await buildPages(folder)
  return pathToFileURL(`${folder}/`)
}
