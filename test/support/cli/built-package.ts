import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../../..')
/** Beside what npm has installed: git ignores it, and a fresh install removes it. */
const BUILDS = join(ROOT, 'node_modules/.cache/minetree-builds')
const SOURCES = ['src', 'backend/src', 'package.json', 'tsconfig.json', 'tsconfig.build.json']
/** How long a build of other sources is kept, in milliseconds. */
const A_DAY = 24 * 60 * 60 * 1000

/**
 * The package as it is installed, compiled from the sources as they are: once for as long as they stay the same, for it
 * takes a while and many tests ask. Nobody is to write into it.
 *
 * @returns where `INSTALLED_PACKAGE` is, for tests that run once more against the package as a consumer installed it.
 */
export async function builtPackage(): Promise<string> {
  if (process.env.INSTALLED_PACKAGE !== undefined) return process.env.INSTALLED_PACKAGE
  const folder = join(BUILDS, await hashOfSources())
  if (existsSync(folder)) return folder
  await mkdir(BUILDS, { recursive: true })
  await removeOld(BUILDS)
  const made = await mkdtemp(join(BUILDS, 'making-'))
  await build(made)
  try {
    // What stands under its name is whole.
    await rename(made, folder)
  } catch (error) {
    // Another process was faster, with the same.
    if (!existsSync(folder)) throw error
    await rm(made, { recursive: true })
  }
  return folder
}

async function build(folder: string): Promise<void> {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(folder, 'dist')]
  await promisify(execFile)(process.execPath, args)
  await buildMinePage(join(folder, 'dist/mine-page'))
  await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'))
  for (const shared of ['node_modules', 'assets']) await symlink(join(ROOT, shared), join(folder, shared))
}

async function hashOfSources(): Promise<string> {
  const hash = createHash('sha256')
  for (const source of SOURCES) {
    for (const file of await filesAt(join(ROOT, source)))
      hash.update(`${file}\0`).update(await readFile(file))
  }
  return hash.digest('hex').slice(0, 16)
}

async function filesAt(path: string): Promise<string[]> {
  if ((await stat(path)).isFile()) return [path]
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

/** Removes what stands in a folder for longer than a day. */
export async function removeOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const { mtimeMs } = await stat(path)
    if (Date.now() - mtimeMs > A_DAY) await rm(path, { recursive: true, force: true })
  }
}

/** Builds the page for mining, as `npm run build` does, into a folder. */
export async function buildMinePage(folder: string): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build:page', '--', `--outdir=${folder}`], {
    cwd: ROOT,
  })
}

/** The page as the sources have it now, for the tests of one file. */
export async function builtMinePage(): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-page-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await buildMinePage(folder)
  return pathToFileURL(`${folder}/`)
}
