import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, stop } from 'esbuild'
import { installedOnce, madeOnce } from '../cli/made-once.js'

const ROOT = resolve(import.meta.dirname, '../../..')

const run = promisify(execFile)

export interface DeploymentInfo {
  topicManagers: Record<string, string>
  lookupServices: Record<string, { serviceFactory: string; hydrateWith: 'knex' | 'mongo' }>
}

/** What `deployment-info.json` says. */
export async function deploymentInfo(): Promise<DeploymentInfo> {
  return JSON.parse(await readFile(join(ROOT, 'deployment-info.json'), 'utf8')) as DeploymentInfo
}

/** The same, with the factories that stand beside those for MongoDB. */
export function onKnex({ topicManagers, lookupServices }: DeploymentInfo): DeploymentInfo {
  const services = Object.entries(lookupServices).map(([name, { serviceFactory }]) => {
    const beside = serviceFactory.replace('MongoFactory.ts', 'Factory.ts')
    return [name, { serviceFactory: beside, hydrateWith: 'knex' as const }]
  })
  return { topicManagers, lookupServices: Object.fromEntries(services) }
}

/**
 * The program that LARS 1.5 writes for a deployment, but for its port, which is 8080 there.
 *
 * @param app Where its container has the sources: `/app` there.
 */
export function larsProgram({ topicManagers, lookupServices }: DeploymentInfo, app: string): string {
  const pathOf = (path: string): string => join(app, path.replace(/^(\.\/)?backend\//, ''))
  const managers = Object.entries(topicManagers).map(([name, path]) => ({
    imported: `import tm_${name} from '${pathOf(path)}'`,
    configured: `server.configureTopicManager('${name}', new tm_${name}())`,
  }))
  const services = Object.entries(lookupServices).map(([name, { serviceFactory, hydrateWith }]) => {
    const method = hydrateWith === 'knex' ? 'WithKnex' : 'WithMongo'
    return {
      imported: `import lsf_${name} from '${pathOf(serviceFactory)}'`,
      configured: `server.configureLookupService${method}('${name}', lsf_${name})`,
    }
  })
  const parts = [...managers, ...services]
  return `
import OverlayExpress from '@bsv/overlay-express'
${parts.map(({ imported }) => imported).join('\n')}

const main = async () => {
    const server = new OverlayExpress(
        \`LARS\`,
        process.env.SERVER_PRIVATE_KEY!,
        process.env.HOSTING_URL!,
        process.env.ADMIN_BEARER_TOKEN
    )
    server.configurePort(0)
    server.configureVerboseRequestLogging(process.env.REQUEST_LOGGING === 'true')
    server.configureNetwork(process.env.NETWORK === 'mainnet' ? 'main' : 'test')
    await server.configureKnex(process.env.KNEX_URL!)
    await server.configureMongo(process.env.MONGO_URL!)
    server.configureEnableGASPSync(process.env.GASP_SYNC === 'true')
    server.configureEngineParams({
      logTime: process.env.LOG_TIME === 'true',
      logPrefix: process.env.LOG_PREFIX || '[LARS OVERLAY ENGINE] ',
      throwOnBroadcastFailure: process.env.THROW_ON_BROADCAST_FAIL === 'true',
      syncConfiguration: {}
    })
${parts.map(({ configured }) => `    ${configured}`).join('\n')}
    await server.configureEngine()
    await server.start()
}

main()
`
}

/** Why there is no container: `missing` says what this machine has not. */
export type Installed = { modules: string } | { missing: string }

/**
 * What a container of LARS has installed: the dependencies of `backend/package.json`, a database driver, and a host, in place
 * of which stands {@link OverlayExpress} on Express 4. Installed once for as long as all of that stays the same.
 */
export async function installContainer(): Promise<Installed> {
  // What OverlayExpress 0.8 brings along, which LARS 1.5 installs.
  const host = await hostPackage({ versions: { '@bsv/sdk': '^1.9.24', mongodb: '^6.20.0' } })
  const container = containerOf({
    ...(await backendDependencies()),
    '@bsv/overlay-express': 'file:./overlay-express',
    ...BESIDE_HOST,
  })
  const make = async (made: string): Promise<void> => {
    await writeFile(join(made, 'package.json'), JSON.stringify(container))
    await mkdir(join(made, 'overlay-express'))
    for (const [file, text] of Object.entries(host))
      await writeFile(join(made, 'overlay-express', file), text)
    await run('npm', INSTALL, { cwd: made })
  }
  const installed = await installedOnce({ kind: 'containers', key: JSON.stringify([container, host]), make })
  return 'missing' in installed ? installed : { modules: join(installed.folder, 'node_modules') }
}

/** What LARS installs beside a host and what a deployment depends on. */
const BESIDE_HOST = { mysql2: '^3.11.5', tsx: '^4.19.2' }

/** What `npm install` would make of what OverlayExpress 0.8 depends on, and what stands in its place uses, without the plugin. */
export async function packagesOfHostAlone(): Promise<[path: string, id: string][]> {
  // Without `@bsv/overlay-discovery-services`, `body-parser`, `chalk` and `uuid`, of which the plugin has nothing.
  const { '@bsv/overlay': overlay = '', libsql = '' } = await ownVersions()
  const container = containerOf({
    ...{ '@bsv/overlay': overlay, '@bsv/sdk': '^1.9.24', libsql },
    ...{ express: '^4.21.0', knex: '^3.1.0', mongodb: '^6.20.0' },
    ...BESIDE_HOST,
  })
  const make = async (made: string): Promise<void> => {
    await writeFile(join(made, 'package.json'), JSON.stringify(container))
    await run('npm', [...INSTALL, '--package-lock-only'], { cwd: made })
  }
  const folder = await madeOnce({ kind: 'hosts', key: JSON.stringify(container), make })
  return await packagesOf(join(folder, 'package-lock.json'))
}

async function backendDependencies(): Promise<Record<string, string>> {
  const { dependencies } = JSON.parse(await readFile(join(ROOT, 'backend/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return dependencies
}

/** As LARS has it: nothing of the package but what it depends on; peers and `overrides` left out. */
function containerOf(dependencies: Record<string, string>): object {
  return {
    ...{ name: 'overlay-express-dev', version: '1.0.0', main: 'index.ts' },
    dependencies,
    devDependencies: { '@types/node': '^22.10.1' },
  }
}

const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund']

/** The packages that npm has installed: where each stands, such as `node_modules/@bsv/sdk`, and which it is. */
export async function packagesIn({ modules }: { modules: string }): Promise<[path: string, id: string][]> {
  return await packagesOf(join(modules, '.package-lock.json'))
}

async function packagesOf(file: string): Promise<[path: string, id: string][]> {
  const lock = JSON.parse(await readFile(file, 'utf8')) as {
    packages: Record<string, { version?: string }>
  }
  return Object.entries(lock.packages).map(([path, { version }]) => [path, `${nameOf(path)}@${version}`])
}

/** The name of a package that stands there. */
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 13)

/**
 * The files of the package in place of `@bsv/overlay-express`: {@link OverlayExpress}, with the types of the real one.
 *
 * @param host.version That of the host.
 * @param host.versions What it depends on in other versions than these.
 */
export async function hostPackage({
  version = '0.8.4',
  versions,
}: {
  version?: string
  versions: Record<string, string>
}): Promise<Record<string, string>> {
  const read = async (file: string): Promise<string> => await readFile(file, 'utf8')
  const ours = await ownVersions()
  const used = ['@bsv/overlay', '@bsv/sdk', 'knex', 'libsql', 'lru-cache', 'mongodb']
  const host = {
    name: '@bsv/overlay-express',
    version,
    type: 'module',
    exports: { types: './index.d.ts', import: './index.js', require: './index.cjs' },
    dependencies: {
      ...Object.fromEntries(used.map((name) => [name, ours[name]])),
      express: '^4.21.0',
      ...versions,
    },
  }
  return {
    'package.json': JSON.stringify(host),
    'index.js': await hostCode('esm'),
    'index.cjs': await hostCode('cjs'),
    'index.d.ts': await read(join(import.meta.dirname, 'overlay-express-api.d.ts')),
    'engine-2.d.ts': await read(join(import.meta.dirname, 'engine-2.ts')),
  }
}

/** The versions that this package depends on. */
async function ownVersions(): Promise<Record<string, string>> {
  const { dependencies, devDependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  ) as Record<'dependencies' | 'devDependencies', Record<string, string>>
  return { ...devDependencies, ...dependencies }
}

async function hostCode(format: 'esm' | 'cjs'): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'overlay-express.ts')],
    bundle: true,
    write: false,
    packages: 'external',
    platform: 'node',
    format,
    target: 'node20',
  })
  await stop()
  return outputFiles[0]?.text ?? ''
}

/** Makes an empty folder a container: `backend/src` alone, what is installed, and a program. */
export async function fillContainer(folder: string, { modules }: { modules: string }): Promise<void> {
  await cp(join(ROOT, 'backend/src'), join(folder, 'src'), { recursive: true })
  await writeFile(join(folder, 'package.json'), await readFile(join(modules, '../package.json')))
  const compilerOptions = { experimentalDecorators: true, emitDecoratorMetadata: true }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  await symlink(modules, join(folder, 'node_modules'))
}
