import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { builtPackage, removeOld } from './built-package.js'

const ROOT = resolve(import.meta.dirname, '../../..')
/** Beside what npm has installed: git ignores it, and a fresh install removes it. */
const INSTALLED = join(ROOT, 'node_modules/.cache/minetree-installed')
/** How an installation fails if there is no registry; anything else is a fault. */
const NO_REGISTRY = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH/

const run = promisify(execFile)

/** A folder with what is installed in its `node_modules`, or why there is none. */
export type Installation = { folder: string } | { missing: string }

interface Consumer {
  /** What it depends on beside this package, by version. */
  dependencies?: Record<string, string>
  /** Packages that are in no registry: their files, by path. */
  packages?: Record<string, Record<string, string>>
}

/**
 * Installs this package from its tarball, as a consumer does who knows nothing of the repository. It is installed once for as
 * long as the sources and the consumer stay the same; nobody may write into the folder.
 */
export async function installedPackage({
  dependencies = {},
  packages = {},
}: Consumer = {}): Promise<Installation> {
  const built = await builtPackage()
  const hash = createHash('sha256').update(JSON.stringify([basename(built), dependencies, packages]))
  const folder = join(INSTALLED, hash.digest('hex').slice(0, 16))
  if (existsSync(folder)) return { folder }
  await mkdir(INSTALLED, { recursive: true })
  await removeOld(INSTALLED)
  const made = await mkdtemp(join(INSTALLED, 'making-'))
  const local = Object.entries(packages).map(([name, files]) => ({ name, path: basename(name), files }))
  for (const { path, files } of local) {
    await mkdir(join(made, path))
    for (const [file, text] of Object.entries(files)) await writeFile(join(made, path, file), text)
  }
  const consumer = {
    private: true,
    type: 'module',
    dependencies: {
      ...dependencies,
      ...Object.fromEntries(local.map(({ name, path }) => [name, `file:./${path}`])),
      minetree: `file:./${await packed(built, made)}`,
    },
  }
  await writeFile(join(made, 'package.json'), JSON.stringify(consumer))
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--install-links']
  try {
    await run('npm', ['install', ...options], { cwd: made })
  } catch (error) {
    await rm(made, { recursive: true })
    if (NO_REGISTRY.test(String((error as { stderr?: unknown }).stderr)))
      return { missing: 'no registry to install from' }
    throw error
  }
  // A folder under its final name is complete; another process may have been faster.
  await rename(made, folder).catch(async (error: unknown) => {
    if (!existsSync(folder)) throw error
    await rm(made, { recursive: true })
  })
  return { folder }
}

/** Packs the package as it is built into a folder. Returns the name of the tarball. */
async function packed(built: string, into: string): Promise<string> {
  const staged = await mkdtemp(join(into, 'staged-'))
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  for (const file of ['package.json', 'README.md', 'LICENSE', ...files])
    await cp(join(file === 'dist' ? built : ROOT, file), join(staged, file), { recursive: true })
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', into]
  const { stdout } = await run('npm', args, { cwd: staged })
  await rm(staged, { recursive: true })
  return stdout.trim()
}
