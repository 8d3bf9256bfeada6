import { execFile } from 'node:child_process'
import { copyFile, cp, readFile, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { madeOnce } from './made-once.js'

const ROOT = resolve(import.meta.dirname, '../../..')
const CLIENT = join(ROOT, 'packages/client')
const run = promisify(execFile)

/**
 * The package as it is installed, compiled from the sources as they are: once for as long as they stay the same, for it
 * takes a while and many tests ask; or what stands in `dist`, if that is made of them. Nobody is to write into it.
 *
 * @returns where `INSTALLED_PACKAGE` is, for tests that run once more against the package as a consumer installed it.
 */
export async function builtPackage(): Promise<string> {
  if (process.env.INSTALLED_PACKAGE !== undefined) return process.env.INSTALLED_PACKAGE
  return await made('builds', async (folder) => {
    if (await isBuilt()) for (const part of ['src', 'backend', 'cli', 'pages']) await copyBuilt(part, folder)
    else await build(folder)
    await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'))
    for (const shared of ['node_modules', 'assets']) await symlink(join(ROOT, shared), join(folder, shared))
  })
}

/** The package of the client in the same way, with all that its tarball has. */
export async function builtClient(): Promise<string> {
  return await made('client-builds', async (folder) => {
    const dist = join(folder, 'dist')
    if (await isBuilt()) await cp(join(CLIENT, 'dist'), dist, { recursive: true })
    else await run(process.execPath, [join(CLIENT, 'build.mjs'), `--outdir=${dist}`])
    for (const file of ['package.json', 'README.md', 'LICENSE'])
      await copyFile(join(CLIENT, file), join(folder, file))
  })
}

/** The scripts and the style sheet of pages in the same way: to build these alone takes little. */
export async function builtPages(): Promise<URL> {
  const folder = await made('pages', async (empty) => {
    if (await isBuilt()) await copyBuilt('pages', empty)
    else await buildPages(join(empty, 'dist/pages'))
  })
  return pathToFileURL(join(folder, 'dist/pages/'))
}

const made = async (kind: string, make: (folder: string) => Promise<void>): Promise<string> =>
  await madeOnce({ kind, key: await hashOfSources(), make })

let hash: Promise<string> | undefined
function hashOfSources(): Promise<string> {
  hash ??= run(process.execPath, [join(ROOT, 'prepare.mjs'), '--hash']).then(({ stdout }) => stdout)
  return hash
}

/** Whether `dist` is made of the sources as they are. */
async function isBuilt(): Promise<boolean> {
  const from = await readFile(join(ROOT, 'dist/built-from'), 'utf8').catch(() => undefined)
  return from === (await hashOfSources())
}

async function copyBuilt(part: string, folder: string): Promise<void> {
  await cp(join(ROOT, 'dist', part), join(folder, 'dist', part), { recursive: true })
}

async function build(folder: string): Promise<void> {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(folder, 'dist')]
  await run(process.execPath, args)
  await run(process.execPath, [join(ROOT, 'bundle.mjs'), `--outdir=${join(folder, 'dist/cli')}`])
  await buildPages(join(folder, 'dist/pages'))
}

async function buildPages(folder: string): Promise<void> {
  await run(process.execPath, [join(ROOT, 'bundle-pages.mjs'), `--outdir=${folder}`], { cwd: ROOT })
}
