import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { MongoClient } from 'mongodb'
import type { LookupService, ServiceMetadata } from '../../../backend/src/graph/overlay-interfaces.js'
import { VERSION } from '../../../backend/src/graph/service-metadata.js'

const root = resolve(import.meta.dirname, '../../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const packageOf = (path: string) =>
  JSON.parse(read(path)) as {
    version: string
    license: string
    engines: { node: string }
    dependencies: Record<string, string>
    devDependencies: Record<string, string>
    peerDependencies: Record<string, string>
  }

interface Import {
  file: string
  from: string
  /** Whether nothing of it is left when the file is compiled. */
  isType: boolean
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
}

function importsOf(file: string): Import[] {
  const found = read(file).matchAll(
    /(?:^|\s)(?:import|export)\s[^'"]*?from\s+'([^']+)'|(?:import|require)\('([^']+)'\)/g,
  )
  return [...found].map(([text, from, lazily]) => ({
    file,
    from: from ?? lazily ?? '',
    isType: /^\s*(import|export) type /.test(text),
  }))
}

const isRelative = ({ from }: Import): boolean => from.startsWith('.')
const target = ({ file, from }: Import): string => relative(root, resolve(root, dirname(file), from))

/** The room that a file stands in: `backend/src/protocol/mint.ts` in `protocol`, `src/cli/main.ts` in `cli`. */
function roomOf(path: string): string {
  const parts = path.split('/')
  if (/^src\/explorer\/(?:islands|mine-page|my-page)\//.test(path)) return parts[2] ?? ''
  // One chain of headers for servers and browsers.
  if (path.startsWith('src/chain/headers/')) return 'headers'
  return (parts[0] === 'backend' ? parts[2] : parts[1]) ?? ''
}

/** `spec` of the house: what each room may import, beside itself. */
const ARROWS: Record<string, string[]> = {
  protocol: [],
  graph: ['protocol'],
  facts: ['protocol', 'graph'],
  index: ['protocol', 'graph', 'facts'],
  writer: ['protocol', 'graph', 'facts', 'index'],
  read: ['protocol', 'graph', 'facts', 'index', 'writer'],
  // A host's database and its engine, around what our own server has around a folder.
  host: ['protocol', 'graph', 'facts', 'index', 'read', 'writer'],
  'topic-managers': ['protocol', 'graph', 'read'],
  'lookup-services': ['protocol', 'graph', 'read'],
  explorer: ['protocol', 'graph', 'read'],
  gateway: ['protocol', 'graph', 'read', 'explorer'],
  // Of the client, how a stranger's answer is read within bounds: a headers service is one to both.
  server: [
    'protocol',
    'graph',
    'facts',
    'index',
    'read',
    'writer',
    'topic-managers',
    'lookup-services',
    'gateway',
    'explorer',
    'client',
    'chain',
    'headers',
  ],
  // For anyone who wires a host of an engine: what it configures there, in one place.
  // Its follower is that of our server.
  plugin: [
    'protocol',
    'graph',
    'read',
    'host',
    'topic-managers',
    'lookup-services',
    'gateway',
    'server',
    'chain',
  ],
  // A miner verifies the node that an index shows before anything is signed.
  mining: ['protocol', 'client'],
  // Its journal is a file of SQLite, as the facts are.
  payments: ['protocol', 'graph', 'facts', 'client', 'mining'],
  // A move of a name is a draft that somebody pays for.
  identity: ['protocol', 'client', 'mining', 'payments'],
  publish: ['protocol'],
  headers: ['protocol'],
  client: ['protocol', 'headers'],
  // Runs in a browser: what the host says, it hears over HTTP as everybody does.
  'mine-page': ['protocol', 'mining', 'payments'],
  islands: ['protocol', 'mining', 'payments', 'client', 'mine-page'],
  'my-page': ['protocol', 'client', 'mining', 'payments', 'identity', 'publish', 'mine-page'],
  chain: ['protocol', 'graph', 'read', 'client', 'headers'],
  cli: [
    'protocol',
    'graph',
    'read',
    'server',
    'mining',
    'payments',
    'publish',
    'identity',
    'client',
    'chain',
  ],
}

/** What each room inside a wing may import of that wing, beside itself; `wiring` are the files that stand in no room. */
const INNER_ARROWS: Record<string, Record<string, string[]>> = {
  'src/gateway': {
    http: [],
    content: ['http'],
    images: ['http', 'content'],
    streams: ['http'],
    names: ['http'],
    preview: ['http'],
    metadata: ['http', 'content', 'names'],
    hosts: ['http', 'content'],
    lists: ['http', 'names'],
    sync: ['http'],
    wallets: ['http'],
    recursion: ['http', 'content', 'names', 'wallets'],
    lookups: ['http', 'sync'],
    pages: ['http'],
    openapi: ['http', 'wallets', 'pages'],
    wiring: [
      'http',
      'content',
      'images',
      'hosts',
      'streams',
      'names',
      'preview',
      'metadata',
      'lists',
      'sync',
      'wallets',
      'recursion',
      'lookups',
      'pages',
      'openapi',
    ],
  },
  'src/chain': {
    headers: [],
    sources: ['headers'],
    tracker: ['headers', 'sources'],
    ancestors: ['sources'],
    follow: ['sources', 'ancestors'],
  },
  'src/server': {
    config: [],
    cache: [],
    discovery: ['config'],
    store: ['config', 'cache', 'discovery'],
    hosts: ['config'],
    writer: ['config', 'store', 'discovery'],
    telemetry: ['config', 'writer'],
    images: ['config', 'telemetry'],
    http: ['config', 'store', 'telemetry'],
    gasp: ['config', 'writer'],
    routes: ['config', 'store', 'discovery', 'writer', 'telemetry', 'http', 'gasp'],
    wiring: [
      ...['config', 'store', 'discovery', 'writer', 'telemetry'],
      ...['http', 'hosts', 'images', 'gasp', 'routes'],
    ],
  },
}

/** The room inside a wing that a file stands in: `content` for `src/gateway/content/directory.ts`. */
function innerRoomOf(wing: string, path: string): string {
  const [room = '', file] = path.slice(wing.length + 1).split('/')
  return file === undefined ? 'wiring' : room
}

/** The source of a module. */
function sourceOf(module: string): string {
  const source = module.replace(/\.js$/, '.ts')
  return existsSync(join(root, source)) ? source : `${source}x`
}

const files = [...sources('backend/src'), ...sources('src')]
const imports = files.flatMap(importsOf)

describe('the import arrows', () => {
  test('every file stands in a room that the plan knows', () => {
    expect([...new Set(files.map(roomOf))].sort()).toEqual(Object.keys(ARROWS).sort())
  })

  test('the scan sees imports at all', () => {
    expect(imports.filter(isRelative).length).toBeGreaterThan(50)
  })

  test.each(Object.entries(ARROWS))('%s imports only what it may', (room, allowed) => {
    const wrong = imports
      .filter(isRelative)
      .filter(({ file }) => roomOf(file) === room)
      // A host's wiring of a service to a store: the one place in the plugin where the two meet.
      .filter(({ file }) => !file.endsWith('Factory.ts'))
      .filter((each) => ![room, ...allowed].includes(roomOf(target(each))))
    expect(wrong).toEqual([])
  })

  describe.each(Object.entries(INNER_ARROWS))('inside %s', (wing, arrows) => {
    const isInside = (path: string): boolean => path.startsWith(`${wing}/`)

    test('every file stands in a room that the plan knows', () => {
      const rooms = files.filter(isInside).map((file) => innerRoomOf(wing, file))
      expect([...new Set(rooms)].sort()).toEqual(Object.keys(arrows).sort())
    })

    test('each room imports only what it may, and none that comes after it', () => {
      const order = Object.keys(arrows)
      const wrong = imports
        .filter((each) => isRelative(each) && isInside(each.file) && isInside(target(each)))
        .map((each) => ({ ...each, room: innerRoomOf(wing, each.file), of: innerRoomOf(wing, target(each)) }))
        .filter(({ room, of }) => room !== of)
        .filter(({ room, of }) => !arrows[room]?.includes(of) || order.indexOf(of) > order.indexOf(room))
      expect(wrong).toEqual([])
    })
  })

  test('no imports form a cycle', () => {
    const edges = imports.filter(isRelative).map((each) => ({ file: each.file, to: sourceOf(target(each)) }))
    let left = new Set(files)
    // A file that imports nothing that is left is in no cycle.
    for (let size = 0; size !== left.size; ) {
      size = left.size
      const importing = new Set(edges.filter(({ to }) => left.has(to)).map(({ file }) => file))
      left = new Set([...left].filter((file) => importing.has(file)))
    }
    expect([...left]).toEqual([])
  })

  test('a factory imports nothing but its service, the index of the host and what they share', () => {
    const wrong = imports
      .filter(isRelative)
      .filter(({ file }) => file.endsWith('Factory.ts'))
      .filter(
        (each) => !['protocol', 'graph', 'read', 'host', 'lookup-services'].includes(roomOf(target(each))),
      )
    expect(wrong).toEqual([])
  })

  test('nothing in backend/src reaches outside it', () => {
    const wrong = imports
      .filter(isRelative)
      .filter(({ file }) => file.startsWith('backend/src/'))
      .filter((each) => !target(each).startsWith('backend/src/'))
    expect(wrong).toEqual([])
  })

  // The first two are pure, and the other runs in browsers.
  test.each(['protocol', 'headers', 'client'])('%s imports of packages only the SDK', (room) => {
    const wrong = imports
      .filter((each) => !isRelative(each) && roomOf(each.file) === room)
      .filter(({ file, from }) => from !== '@bsv/sdk' && file !== FOR_NODE)
      // Types of the SDK come from its single modules.
      .filter(({ from, isType }) => !(isType && from.startsWith('@bsv/sdk/')))
    expect(wrong).toEqual([])
  })

  test('nothing in client imports what is for Node', () => {
    const wrong = imports.filter(
      (each) => isRelative(each) && target(each) === FOR_NODE.replace('.ts', '.js'),
    )
    expect(wrong.filter(({ file }) => roomOf(file) === 'client')).toEqual([])
  })
})

/** The one file of the client that needs Node: an entry of its own. */
const FOR_NODE = 'src/client/file-segment-store.ts'

/** What the pages of a host show of a topic or service; they must work offline. */
function expectCard(card: ServiceMetadata, topicOrService: string): void {
  expect(card).toEqual({
    name: expect.stringMatching(/^[A-Z][a-z ]+$/),
    shortDescription: expect.stringMatching(/\.$/),
    iconURL: expect.stringMatching(/^data:image\/svg\+xml,[\w%.()*'~!-]+$/),
    version: VERSION,
    informationURL: expect.stringMatching(/^getDocumentationFor\w+\?\w+=/),
  })
  expect(card.informationURL?.endsWith(`=${topicOrService}`)).toBe(true)
  const svg = decodeURIComponent(card.iconURL?.split(',')[1] ?? '')
  expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" .*<\/svg>$/)
}

/** A service that repeats what failed, until it is closed. */
type ClosableService = LookupService & { close(): Promise<void> }

describe('the plugin as LARS takes it', () => {
  const nameOf = (from: string): string =>
    from
      .split('/')
      .slice(0, from.startsWith('@') ? 2 : 1)
      .join('/')

  test('backend/package.json has what backend/src imports, in the versions of the root, and nothing else', () => {
    const used = imports
      .filter((each) => !isRelative(each) && each.file.startsWith('backend/src/'))
      .filter(({ from }) => !from.startsWith('node:') && !builtinModules.includes(from))
    const namesOf = (some: Import[]) => [...new Set(some.map(({ from }) => nameOf(from)))].sort()
    const { dependencies, devDependencies, peerDependencies, version } = packageOf('backend/package.json')
    // LARS and CARS install the dependencies and nothing else. The host brings its own copies of the rest; of `libsql`, only a
    // program on a Node without `node:sqlite` has one.
    expect(Object.keys(peerDependencies)).toEqual(['@bsv/sdk', 'libsql'])
    const ours = namesOf(used.filter(({ isType }) => !isType)).filter((name) => !(name in peerDependencies))
    expect(Object.keys(dependencies).sort()).toEqual(ours)
    expect(Object.keys(devDependencies).sort()).toEqual(
      namesOf(used).filter((name) => !(name in dependencies) && !(name in peerDependencies)),
    )
    const root = packageOf('package.json')
    expect(root.dependencies).toMatchObject({ ...dependencies, ...devDependencies })
    for (const [name, range] of Object.entries(peerDependencies))
      expect(range.split(' || ').map((each) => each.split('.')[0])).toContain(
        root.dependencies[name]?.split('.')[0],
      )
    expect([version, VERSION]).toEqual([root.version, root.version])
  })

  test('the package of the client has the version of the root, and the licence', () => {
    const [root, client] = [packageOf('package.json'), packageOf('packages/client/package.json')]
    expect(client).toMatchObject({
      version: root.version,
      license: root.license,
      engines: root.engines,
      peerDependencies: { '@bsv/sdk': root.dependencies['@bsv/sdk'] },
    })
    expect(client.dependencies).toBeUndefined()
    expect(read('packages/client/LICENSE')).toBe(read('LICENSE'))
  })

  const info = JSON.parse(read('deployment-info.json')) as {
    topicManagers: Record<string, string>
    lookupServices: Record<string, { serviceFactory: string; hydrateWith: string }>
  }

  test('deployment-info.json names both pairs', () => {
    expect(Object.keys(info.topicManagers)).toEqual(['tm_names', 'tm_ordinals'])
    expect(Object.keys(info.lookupServices)).toEqual(['ls_names', 'ls_ordinals'])
  })

  test.each(Object.entries(info.topicManagers))(
    '%s is a default export that `new X()` makes',
    async (name, path) => {
      expect(existsSync(join(root, path))).toBe(true)
      const { default: Manager } = await import(join(root, path))
      const manager = new Manager()
      expectCard(await manager.getMetaData(), name)
    },
  )

  test.each(Object.entries(info.lookupServices))(
    '%s is a default factory for mongo, and one for knex stands beside it',
    async (name, { serviceFactory, hydrateWith }) => {
      expect(hydrateWith).toBe('mongo')
      const { default: create } = await import(join(root, serviceFactory))
      // A factory only keeps the database; it asks nothing of it before there is something to write or to answer.
      const service: ClosableService = create(new MongoClient('mongodb://127.0.0.1:1').db('host'))
      expectCard(await service.getMetaData(), name)
      await service.close()
      const { default: createOnKnex } = await import(join(root, serviceFactory.replace('Mongo', '')))
      const onKnex: { service: ClosableService; migrations: unknown[] } = createOnKnex({})
      expectCard(await onKnex.service.getMetaData(), name)
      // A host numbers those of all services through; ours create their tables themselves.
      expect(onKnex.migrations).toEqual([])
      await onKnex.service.close()
    },
  )
})

test('nothing is left to do in the sources', () => {
  const marker = new RegExp(['TO', 'DO|FIX', 'ME'].join(''))
  expect(
    [...files, ...sources('test'), ...sources('trials')].filter((file) => marker.test(read(file))),
  ).toEqual([])
})

test('the suites that are to start first are there', () => {
  const suites = Object.keys(JSON.parse(read('test/support/seconds.json')) as Record<string, number>)
  expect(suites.filter((suite) => !existsSync(join(root, suite)))).toEqual([])
})
