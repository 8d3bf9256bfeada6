import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join, posix, resolve } from 'node:path'
import { parse } from 'yaml'
import { readConfig, SETTINGS, UNUSED_SETTINGS } from '../../../src/server/config/config.js'
import { ENGINE_VERSIONS } from '../../support/plugin/engines.js'
import { useServers } from '../../support/server/test-server.js'

const root = resolve(import.meta.dirname, '../../..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const dockerfile = read('Dockerfile')
const COMPOSE_FILES = ['compose.yaml', 'compose.mariadb.yaml', 'compose.mongo.yaml']
const compose = COMPOSE_FILES.map(read)
const servers = useServers()

/** The settings that the tables of the page document, a name for each time. */
const documented = [...read('docs/settings.md').matchAll(/^\| ((?:`[A-Z_]+`(?:, )?)+) \|/gm)].flatMap(
  ([, names = '']) => [...names.matchAll(/[A-Z_]+/g)].map(([name]) => name),
)

test('the image and the compose files set nothing but settings', () => {
  const [, image = ''] = /^ENV (.*)$/m.exec(dockerfile) ?? []
  // Of the service, and not of the database beside it.
  const ours = compose.map((file) => file.split(/^ {2}(?:mariadb|mongo):$/m)[0] ?? '').join('\n')
  const set = [...image.matchAll(/([A-Z_]+)=/g), ...ours.matchAll(/^ {6}([A-Z_]+): /gm)].map(
    ([, name]) => name,
  )
  expect(set).toEqual(expect.arrayContaining(['KNEX_URL', 'MONGO_URL']))
  for (const name of set.filter((each) => each !== 'NODE_ENV')) expect(documented).toContain(name)
})

test('the image contains what the package needs to run', () => {
  const copied = [...dockerfile.matchAll(/^COPY --from=build \/minetree\/(\S+)/gm)].map(([, path]) => path)
  expect(copied.toSorted()).toEqual(['assets', 'dist', 'node_modules', 'package.json'])
  expect(existsSync(join(root, 'assets'))).toBe(true)
  const [, entry = ''] = /^CMD \["node", "([^"]+)", "serve"\]$/m.exec(dockerfile) ?? []
  expect(JSON.parse(read('package.json')).bin).toEqual({ minetree: entry })
  expect(dockerfile).toMatch(/^USER node$/m)
})

describe('the packed package', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] }
  // Tests of packages install what is packed.
  const isPacked = (path: string): boolean =>
    existsSync(join(root, path)) && files.some((each) => path === each || path.startsWith(`${each}/`))

  test('has what deployment-info.json names, for LARS and CARS, and all that it imports', () => {
    const { topicManagers, lookupServices } = JSON.parse(read('deployment-info.json')) as {
      topicManagers: Record<string, string>
      lookupServices: Record<string, { serviceFactory: string }>
    }
    const named = [
      ...Object.values(topicManagers),
      ...Object.values(lookupServices).map(({ serviceFactory }) => serviceFactory),
    ].map((path) => posix.normalize(path))
    expect(named).toHaveLength(4)
    const reached = new Set(named)
    for (const file of reached)
      for (const [, from = ''] of read(file).matchAll(/(?:from|import) '(\.[^']+)\.js'/g))
        reached.add(`${posix.join(posix.dirname(file), from)}.ts`)
    expect(reached.size).toBeGreaterThan(50)
    const others = ['deployment-info.json', 'backend/package.json', 'docs/plugin.md']
    expect([...reached, ...others].filter((file) => !isPacked(file))).toEqual([])
  })

  test('names what a host brings as optional peers, in the versions that are tested', () => {
    const { peerDependencies, peerDependenciesMeta, devDependencies } = JSON.parse(read('package.json'))
    expect(Object.keys(peerDependencies)).toEqual(['@bsv/overlay', '@bsv/overlay-express', 'sharp'])
    expect(peerDependenciesMeta).toEqual({
      '@bsv/overlay': { optional: true },
      '@bsv/overlay-express': { optional: true },
      sharp: { optional: true },
    })
    expect(peerDependencies['@bsv/overlay']).toContain(devDependencies['@bsv/overlay'])
    const ranges = String(peerDependencies['@bsv/overlay']).match(/\d+\.\d+/g)
    for (const version of ENGINE_VERSIONS)
      expect(ranges).toContainEqual(version.startsWith('2.') ? '2.0' : version.replace(/\.\d+$/, ''))
  })
})

test('the health check of the image passes only while the service answers', async () => {
  const server = await servers.start()
  const [, line = ''] = /HEALTHCHECK[^\n]*\\\n\s+CMD (\[.*\])$/m.exec(dockerfile) ?? []
  const [program, ...parameters] = JSON.parse(line) as string[]
  expect(program).toBe('node')
  const check = async (): Promise<unknown> => {
    const { port } = new URL(server.url)
    const child = spawn(process.execPath, parameters, { env: { PORT: port }, stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    return code
  }
  expect(await check()).toBe(0)
  await server.stop()
  expect(await check()).toBe(1)
})

/** The settings of an environment file, also those that are commented out. */
function settingsIn(file: string, { commented }: { commented: boolean }): [name: string, value: string][] {
  const line = commented ? /^#([A-Z][A-Z0-9_]*)=(.*)$/gm : /^([A-Z][A-Z0-9_]*)=(.*)$/gm
  return [...read(file).matchAll(line)].map(([, name = '', value = '']) => [name, value])
}

/** Settings without effect are not documented. */
const usable = SETTINGS.filter((name) => !(name in UNUSED_SETTINGS))

describe('the settings of a deployment', () => {
  test('docs/settings.md documents every setting once, and nothing else', () => {
    expect(documented.toSorted()).toEqual(usable.toSorted())
  })

  test('the example file has each of them once, with a valid value', () => {
    const example = settingsIn('minetree.env.example', { commented: true })
    expect(example.map(([name]) => name).sort()).toEqual([...usable].sort())
    // Copying it must not set anything.
    expect(settingsIn('minetree.env.example', { commented: false })).toEqual([])
    for (const [name, value] of example) expect(() => readConfig({ [name]: value })).not.toThrow()
  })

  test.each(COMPOSE_FILES)('%s reads settings from minetree.env, which is optional', (file) => {
    const { services } = parse(read(file)) as {
      services: Record<string, { env_file?: unknown; environment?: Record<string, string> }>
    }
    expect(services.minetree?.env_file).toEqual([
      { path: 'compose.env' },
      { path: 'minetree.env', required: false },
    ])
    // minetree.env cannot override `environment`.
    const fixed = Object.keys(services.minetree?.environment ?? {})
    expect(fixed.filter((name) => !['KNEX_URL', 'MONGO_URL'].includes(name))).toEqual([])
  })

  test('compose.env configures a mainnet node behind a proxy', () => {
    const config = readConfig(Object.fromEntries(settingsIn('compose.env', { commented: false })))
    expect(config).toMatchObject({ profile: { name: 'mainnet' }, chainTracker: 'headers', warnings: [] })
    expect(config.limits.trustedProxies).toBe(1)
  })

  test('the file with the secrets is neither committed nor shipped', () => {
    for (const file of ['.gitignore', '.dockerignore'])
      expect(read(file).split('\n')).toContain('minetree.env')
  })
})

test('the lockfile names no registry, and the image installs what it says', () => {
  expect(read('package-lock.json')).not.toMatch(/"resolved": "\w+:/)
  expect(dockerfile).toContain('RUN npm ci ')
})
