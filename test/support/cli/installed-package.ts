import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { builtClient, builtPackage } from './built-package.js'
import { type Installation, installedOnce } from './made-once.js'

const ROOT = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)

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
  const local = Object.entries(packages).map(([name, files]) => ({ name, path: basename(name), files }))
  const make = async (made: string): Promise<void> => {
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
    await install(made, consumer)
  }
  const key = JSON.stringify([basename(built), dependencies, packages])
  return await installedOnce({ kind: 'installed', key, make })
}

/** Installs the package of the client from its tarball, and nothing else. */
export async function installedClient(): Promise<Installation> {
  const built = await builtClient()
  const make = async (made: string): Promise<void> => {
    const dependencies = { 'minetree-client': `file:./${await pack(built, made)}` }
    await install(made, { private: true, dependencies })
  }
  return await installedOnce({ kind: 'installed-client', key: basename(built), make })
}

/** Links both packages, as they are installed, into an empty folder, with what `minetree` depends on. */
export async function installBoth(folder: string): Promise<Installation> {
  const [whole, client] = [await installedPackage(), await installedClient()]
  if ('missing' in whole) return whole
  if ('missing' in client) return client
  const modules = join(folder, 'node_modules')
  await mkdir(modules)
  const names = (await readdir(join(whole.folder, 'node_modules'))).filter(
    (name) => !/^\.(?!bin$)/.test(name),
  )
  for (const name of names) await symlink(join(whole.folder, 'node_modules', name), join(modules, name))
  await symlink(join(client.folder, 'node_modules/minetree-client'), join(modules, 'minetree-client'))
  return { folder }
}

async function install(folder: string, consumer: object): Promise<void> {
  await writeFile(join(folder, 'package.json'), JSON.stringify(consumer))
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--install-links']
  await run('npm', ['install', ...options], { cwd: folder })
}

/** Packs the package as it is built into a folder. Returns the name of the tarball. */
async function packed(built: string, into: string): Promise<string> {
  const staged = await mkdtemp(join(into, 'staged-'))
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  for (const file of ['package.json', 'README.md', 'LICENSE', ...files])
    await cp(join(file === 'dist' ? built : ROOT, file), join(staged, file), { recursive: true })
  const tarball = await pack(staged, into)
  await rm(staged, { recursive: true })
  return tarball
}

/** Packs a folder as it is. Returns the name of the tarball. */
async function pack(folder: string, into: string): Promise<string> {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', into]
  const { stdout } = await run('npm', args, { cwd: folder })
  return stdout.trim()
}
