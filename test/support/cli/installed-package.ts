import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { builtClient, builtPackage } from './built-package.js'
import { type Installation, installedOnce, madeOnce } from './made-once.js'

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
}: Consumer): Promise<Installation> {
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
        minetree: await packed('minetree'),
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
    const dependencies = { 'minetree-client': await packed('minetree-client') }
    await install(made, { private: true, dependencies })
  }
  return await installedOnce({ kind: 'installed-client', key: basename(built), make })
}

/** Installs what an example needs, with the package of the client from its tarball. The sources of the example are beside it. */
export async function installedExample(name: string): Promise<Installation> {
  const built = await builtClient()
  const source = join(ROOT, 'examples', name)
  const manifest = await readFile(join(source, 'package.json'), 'utf8')
  const make = async (made: string): Promise<void> => {
    await cp(source, made, { recursive: true })
    const { dependencies, ...rest } = JSON.parse(manifest) as { dependencies: Record<string, string> }
    const own = { 'minetree-client': await packed('minetree-client') }
    await install(made, { ...rest, dependencies: { ...dependencies, ...own } })
  }
  const files = await readdir(source, { recursive: true, withFileTypes: true })
  const texts = await Promise.all(
    files
      .filter((file) => file.isFile() && !file.parentPath.includes('node_modules'))
      .map(async ({ parentPath, name: file }) => await readFile(join(parentPath, file), 'utf8')),
  )
  return await installedOnce({ kind: 'examples', key: JSON.stringify([basename(built), name, texts]), make })
}

/** What `minetree` depends on, all the way down: places in `node_modules`, as npm has it here. */
export async function dependencies(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; link?: boolean }>
  }
  return Object.entries(packages).flatMap(([path, { dev, link }]) =>
    path.startsWith('node_modules/') && !dev && !link ? path : [],
  )
}

/** Unpacks both packages from their tarballs into an empty folder, with links to what `minetree` depends on. */
export async function installBoth(folder: string): Promise<Installation> {
  const client = await installedClient()
  if ('missing' in client) return client
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  const tarball = (await packed('minetree')).slice('file:'.length)
  await run('tar', ['-xzf', tarball, '-C', modules])
  await rename(join(modules, 'package'), join(modules, 'minetree'))
  await symlink('../minetree/dist/cli/main.js', join(modules, '.bin/minetree'))
  await symlink(join(client.folder, 'node_modules/minetree-client'), join(modules, 'minetree-client'))
  for (const path of (await dependencies()).filter((each) => each.split('node_modules/').length === 2)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await symlink(join(ROOT, path), join(folder, path))
  }
  return { folder }
}

async function install(folder: string, consumer: object): Promise<void> {
  await writeFile(join(folder, 'package.json'), JSON.stringify(consumer))
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--install-links']
  await run('npm', ['install', ...options], { cwd: folder })
}

type PackageName = 'minetree' | 'minetree-client'

/** The tarball of a package, as a dependency: packed once for as long as the sources stay the same. */
export async function packed(name: PackageName): Promise<string> {
  const built = name === 'minetree' ? await builtPackage() : await builtClient()
  const make = async (into: string): Promise<void> => {
    const folder = name === 'minetree' ? await staged(built) : built
    const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', into]
    await run('npm', args, { cwd: folder, maxBuffer: 2 ** 26 })
    if (folder !== built) await rm(folder, { recursive: true })
  }
  const folder = await madeOnce({ kind: `packed-${name}`, key: basename(built), make })
  const [tarball = ''] = await readdir(folder)
  return `file:${join(folder, tarball)}`
}

/** All that the package is made of, in a new folder. */
async function staged(built: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-staged-'))
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  for (const file of ['package.json', 'README.md', 'LICENSE', ...files])
    await cp(join(file === 'dist' ? built : ROOT, file), join(folder, file), { recursive: true })
  return folder
}
