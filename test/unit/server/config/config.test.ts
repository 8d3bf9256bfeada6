import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { COVENANT_LIMITS } from '../../../../backend/src/protocol/mint.js'
import { PROFILES } from '../../../../backend/src/protocol/profile.js'
import { type Config, ConfigError, readConfig } from '../../../../src/server/config/config.js'

const txid = 'ab'.repeat(32)

const GIB = 1024 ** 3

test('with nothing set it is a local network that nobody else can reach', () => {
  expect(readConfig({})).toEqual({
    port: 8080,
    host: '127.0.0.1',
    dataDir: './data',
    profile: PROFILES.local,
    setTerms: {},
    terms: {
      covenantVersion: 1,
      difficulty: 22,
      nameContentType: 'application/name-claim',
      marker: utf8(PROFILES.local.nameMarker),
      tld: undefined,
      limits: COVENANT_LIMITS,
    },
    deployment: undefined,
    seed: true,
    chainTracker: 'scripts-only',
    chainTrackerTimeoutMs: 10_000,
    chainSources: [],
    chainSourceRate: 10,
    headersSources: [
      { kind: 'junglebus', url: 'https://junglebus.gorillapool.io' },
      { kind: 'whatsonchain', url: 'https://api.whatsonchain.com' },
    ],
    followOrdinals: 'names',
    followPollMs: 60_000,
    headersPollMs: 60_000,
    reorgDepth: 10,
    network: 'main',
    hostingUrl: undefined,
    serverPrivateKey: undefined,
    syncPeers: [],
    syncIntervalMs: 60_000,
    maxBodyBytes: 72 * 1024 * 1024,
    acceptCompressedBodies: false,
    maxContentBytes: 64 * 1024 * 1024,
    contentTypes: undefined,
    gatewayHost: 'localhost',
    serviceHosts: [],
    customDomains: false,
    dnsServers: [],
    contentRedirect: false,
    limits: expect.objectContaining({ trustedProxies: 0 }),
    logLevel: 'info',
    logRequests: false,
    unused: [],
    warnings: [],
  })
})

test('the live network follows its own tree, and checks proofs unless configured not to', () => {
  const { deployment, chainTracker } = readConfig({ PROFILE: 'mainnet' })
  expect(chainTracker).toBe('headers')
  expect(deployment).toMatchObject({
    genesis: { txid: '58b7558ea379f24266c7e2f5fe321992ad9a724fd7a87423ba412677179ccb25', vout: 0 },
    difficulty: 22,
    nameContentType: 'application/op-ns',
    marker: utf8('1opNSUJVbBc2Vf8LFNSoywGGK4jMcGVrC'),
  })
  // Set to nothing is not set: an empty line in a file of settings turns no check off.
  expect(readConfig({ PROFILE: 'mainnet', CHAIN_TRACKER: '' }).chainTracker).toBe('headers')
  expect(readConfig({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' }).chainTracker).toBe('scripts-only')
})

test('the live tree is followed by the public JungleBus unless another source is set; another tree is not', () => {
  const junglebus = [{ kind: 'junglebus', url: 'https://junglebus.gorillapool.io' }]
  expect(readConfig({ PROFILE: 'mainnet' }).chainSources).toEqual(junglebus)
  expect(readConfig({ PROFILE: 'mainnet', CHAIN_SOURCES: 'none' }).chainSources).toEqual([])
  expect(readConfig({ PROFILE: 'mainnet', GENESIS: `${txid}_0` }).chainSources).toEqual([])
})

test.each<[string, Record<string, string>, string[]]>([
  ['are public services', {}, ['junglebus https://junglebus.g', 'whatsonchain https://api.w']],
  ['of the test network have its headers', { NETWORK: 'test' }, ['whatsonchain https://api.w']],
  [
    'are the chain sources that have headers',
    { CHAIN_SOURCES: 'overlay=https://a.example,whatsonchain,junglebus=http://127.0.0.1:1' },
    ['whatsonchain https://api.w', 'junglebus http://127.0.0.1:1'],
  ],
  [
    'are public services if no chain source has headers',
    { CHAIN_SOURCES: 'overlay=https://a.example' },
    ['junglebus https://junglebus.g', 'whatsonchain https://api.w'],
  ],
  [
    'are those that are set',
    { CHAIN_SOURCES: 'whatsonchain', HEADERS_SOURCES: 'chaintracks=https://b.example' },
    ['chaintracks https://b.example'],
  ],
])('the sources of headers %s', (_, env, expected) => {
  const { headersSources } = readConfig({ PROFILE: 'mainnet', ...env })
  expect(headersSources.map(({ kind, url }) => `${kind} ${url}`)).toEqual(
    expected.map((start) => expect.stringContaining(start)),
  )
})

test.each(['CHAIN_SOURCES', 'HEADERS_SOURCES'])('%s is refused without its user and password', (name) => {
  const refusal = (address: string) => () => readConfig({ PROFILE: 'mainnet', [name]: address })
  for (const address of ['http://user:word@h/', 'overlay=ftp://user:word@h/', 'ftp://user:wo/rd@h'])
    expect(refusal(address)).toThrow(/not (overlay=)?\w+:\/\/\[hidden\]@h/)
})

test('a subscription needs a JungleBus', () => {
  const JUNGLEBUS_SUBSCRIPTION = 'c2f8'
  expect(readConfig({ PROFILE: 'mainnet', JUNGLEBUS_SUBSCRIPTION })).toMatchObject({
    junglebusSubscription: 'c2f8',
  })
  for (const CHAIN_SOURCES of ['none', 'whatsonchain'])
    expect(() => readConfig({ CHAIN_SOURCES, JUNGLEBUS_SUBSCRIPTION })).toThrow(
      'JUNGLEBUS_SUBSCRIPTION: there is no JungleBus in CHAIN_SOURCES',
    )
})

test.each<[string, string, Partial<Config>]>([
  ['PORT', '0', { port: 0 }],
  ['PORT', '65535', { port: 65535 }],
  ['HOST', '::1', { host: '::1' }],
  ['DATA_DIR', '/var/lib/minetree', { dataDir: '/var/lib/minetree' }],
  ['PROFILE', 'mainnet', { profile: PROFILES.mainnet, gatewayHost: undefined }],
  ['PROFILE', 'local', { profile: PROFILES.local }],
  ['CHAIN_TRACKER', 'headers', { chainTracker: 'headers' }],
  [
    'HEADERS_SOURCES',
    'whatsonchain, chaintracks=http://127.0.0.1:3011/',
    {
      headersSources: [
        { kind: 'whatsonchain', url: 'https://api.whatsonchain.com' },
        { kind: 'chaintracks', url: 'http://127.0.0.1:3011' },
      ],
    },
  ],
  [
    'HEADERS_CHECKPOINT',
    `7:${'AB'.repeat(32)}:1f`,
    { headersCheckpoint: { height: 7, hash: 'ab'.repeat(32), work: 31n, minimumWork: 31n } },
  ],
  ['CHAIN_TRACKER_TIMEOUT_MS', '500', { chainTrackerTimeoutMs: 500 }],
  ['CHAIN_SOURCES', 'none', { chainSources: [] }],
  [
    'CHAIN_SOURCES',
    'junglebus, whatsonchain,overlay=https://a.example/base/,http://127.0.0.1:9000,junglebus',
    {
      chainSources: [
        { kind: 'junglebus', url: 'https://junglebus.gorillapool.io' },
        { kind: 'whatsonchain', url: 'https://api.whatsonchain.com' },
        { kind: 'overlay', url: 'https://a.example/base' },
        { kind: 'junglebus', url: 'http://127.0.0.1:9000' },
      ],
      headersSources: [
        { kind: 'junglebus', url: 'https://junglebus.gorillapool.io' },
        { kind: 'whatsonchain', url: 'https://api.whatsonchain.com' },
        { kind: 'junglebus', url: 'http://127.0.0.1:9000' },
      ],
    },
  ],
  ['CHAIN_SOURCE_RATE', '3', { chainSourceRate: 3 }],
  ['HEADERS_POLL_MS', '0', { headersPollMs: 0 }],
  ['REORG_DEPTH', '100', { reorgDepth: 100 }],
  ['ARC_CALLBACK_TOKEN', 'a-token-of-the-processor', { arcCallbackToken: 'a-token-of-the-processor' }],
  ['NETWORK', 'main', { network: 'main' }],
  ['NETWORK', 'mainnet', { network: 'main' }],
  [
    'NETWORK',
    'test',
    { network: 'test', headersSources: [{ kind: 'whatsonchain', url: 'https://api.whatsonchain.com' }] },
  ],
  [
    'NETWORK',
    'testnet',
    { network: 'test', headersSources: [{ kind: 'whatsonchain', url: 'https://api.whatsonchain.com' }] },
  ],
  ['HOSTING_URL', 'https://names.example', { hostingUrl: 'https://names.example' }],
  [
    'SYNC_PEERS',
    'https://a.example, http://b.example/overlay,https://a.example',
    { syncPeers: ['https://a.example', 'http://b.example/overlay'] },
  ],
  ['SYNC_INTERVAL_MS', '0', { syncIntervalMs: 0 }],
  [
    'MAX_BODY_BYTES',
    '1024',
    { maxBodyBytes: 1024, limits: expect.objectContaining({ maxScriptBytes: 1024 }) },
  ],
  [
    'MAX_BODY_BYTES',
    '1073741824',
    { maxBodyBytes: GIB, limits: expect.objectContaining({ maxScriptBytes: GIB }) },
  ],
  ['ACCEPT_COMPRESSED_BODIES', 'true', { acceptCompressedBodies: true }],
  ['MAX_CONTENT_BYTES', '1', { maxContentBytes: 1 }],
  ['MAX_CONTENT_BYTES', '1073741824', { maxContentBytes: 1024 ** 3 }],
  ['CONTENT_TYPES', 'text/plain', { contentTypes: ['text/plain'] }],
  ['CONTENT_TYPES', 'image/*, Text/HTML', { contentTypes: ['image/*', 'text/html'] }],
  ['CONTENT_SECURITY_POLICY', "frame-ancestors 'self'", { contentSecurityPolicy: "frame-ancestors 'self'" }],
  [
    'CONTENT_SECURITY_POLICY',
    "default-src 'self'; img-src *",
    { contentSecurityPolicy: "default-src 'self'; img-src *" },
  ],
  ['GATEWAY_HOST', 'Names.Example', { gatewayHost: 'names.example' }],
  ['GATEWAY_HOST', 'none', { gatewayHost: undefined }],
  ['SERVICE_HOSTS', 'a.example, B,', { serviceHosts: ['a.example', 'b'] }],
  ['CUSTOM_DOMAINS', 'true', { customDomains: true }],
  ['DNS_SERVERS', '127.0.0.1:5353, ::1,[::1]:53', { dnsServers: ['127.0.0.1:5353', '::1', '[::1]:53'] }],
  ['CONTENT_REDIRECT', 'true', { contentRedirect: true }],
  ['SEED', 'none', { seed: false }],
  ['SEED', 'local', { seed: true }],
  ['LOG_LEVEL', 'silent', { logLevel: 'silent' }],
  ['ADMIN_TOKEN', 'correct-horse/18', { adminToken: 'correct-horse/18' }],
  ['SERVER_PRIVATE_KEY', '01', { serverPrivateKey: '01'.padStart(64, '0') }],
  ['ARC_API_KEY', 'key', { unused: [expect.stringMatching(/^ARC_API_KEY is set and has no effect: only/)] }],
  ['WORKERS', 'two', { unused: [expect.stringMatching(/^WORKERS is set/)] }],
  ['SOMETHING_ELSE', 'x', {}],
])('%s=%s changes that and nothing else', (name, value, changed) => {
  expect(readConfig({ [name]: value })).toMatchObject(changed)
  const { profile, terms, deployment, chainTracker, chainSources, seed, ...rest } = {
    ...readConfig({}),
    ...changed,
  }
  expect(readConfig({ [name]: value })).toMatchObject(rest)
})

test('the live tree has the version that it has', () => {
  const env = { PROFILE: 'mainnet', COVENANT_VERSION: '2' }
  expect(() => readConfig(env)).toThrow('COVENANT_VERSION: must be 1 for the live tree')
  expect(readConfig({ ...env, GENESIS: `${txid}_0` }).deployment?.covenantVersion).toBe(2)
})

test('a tree of one’s own is what the settings say, with the rest from the profile', () => {
  const GENESIS = `${txid}_1`
  expect(readConfig({ GENESIS }).deployment).toEqual({
    genesis: { txid, vout: 1 },
    covenantVersion: 1,
    difficulty: 22,
    nameContentType: 'application/name-claim',
    marker: utf8(PROFILES.local.nameMarker),
    tld: undefined,
    limits: COVENANT_LIMITS,
  })
  const all = { GENESIS, COVENANT_VERSION: '2', DIFFICULTY: '4', NAME_MARKER: 'a marker', NAME_TLD: 'test' }
  expect(readConfig(all).deployment).toEqual({
    genesis: { txid, vout: 1 },
    covenantVersion: 2,
    difficulty: 4,
    nameContentType: 'application/name-claim',
    marker: utf8('a marker'),
    tld: 'test',
    limits: COVENANT_LIMITS,
  })
  expect(readConfig({ ...all, GENESIS: '' }).deployment).toBeUndefined()
  const live = readConfig({ PROFILE: 'mainnet', GENESIS }).deployment
  expect(live).toMatchObject({ genesis: { txid, vout: 1 }, covenantVersion: 1 })
  expect(live?.limits).toBeUndefined()
})

test.each<[string, Record<string, string>]>([
  ['of the live network', { PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' }],
  ['that checks proofs', { CHAIN_TRACKER: 'headers' }],
  ['with a tree', { GENESIS: `${txid}_0` }],
])('a node %s is filled with nothing, and says so where it is asked to be', (_, env) => {
  expect(readConfig(env).seed).toBe(false)
  expect(() => readConfig({ ...env, SEED: 'local' })).toThrow(/^SEED: /)
})

test.each([
  ['PORT', `-1 | 65536 | 80.5 | http | 0x50 |  80 | 1e3 | ${'9'.repeat(16)}`],
  ['PROFILE', 'Mainnet | main | test'],
  ['GENESIS', `none | ${txid} | ${txid}:0 | ${txid}_00 | ${txid}_4294967296 | ${txid.slice(2)}_0`],
  ['COVENANT_VERSION', '0 | 3 | v2 | 02'],
  ['DIFFICULTY', '0 | 65 | -4 | hard'],
  ['NAME_MARKER', `ä | a\nb | ${'x'.repeat(76)}`],
  ['NAME_TLD', `.test | Test | a b | ${'x'.repeat(33)}`],
  ['CHAIN_TRACKER', 'none | off | scripts only | Headers | whatsonchain | https://headers.example'],
  ['HEADERS_SOURCES', ', | overlay=https://a.example | junglebus=x | none'],
  ['HEADERS_SOURCES', 'https://a.example?key=1 | chaintracks=https://a.example?key=1'],
  ['HEADERS_CHECKPOINT', `7 | 7:${'ab'.repeat(31)} | x:${'ab'.repeat(32)} | 7:${'ab'.repeat(32)}:`],
  ['CHAIN_SOURCES', ', | none,junglebus | overlay | JungleBus | bitails=https://a.example'],
  ['CHAIN_SOURCES', 'junglebus=ftp://a.example | https://a.example?key=1 | https://user:word@a.example'],
  ['CHAIN_SOURCES', Array.from({ length: 11 }, (_, index) => `https://a.example/${index}`).join()],
  ['CHAIN_SOURCE_RATE', '0 | 10001 | 0.5'],
  ['JUNGLEBUS_SUBSCRIPTION', `a b | ../x | ${'x'.repeat(129)}`],
  ['HEADERS_POLL_MS', '-1 | 1s | 86400001'],
  ['REORG_DEPTH', '0 | 10001'],
  ['NETWORK', 'mainn | regtest'],
  ['HOSTING_URL', 'names.example | ftp://names.example | https://me:word@a.example | https://me@a.example'],
  ['SERVER_PRIVATE_KEY', `0 | ${'f'.repeat(64)} | ${'1'.repeat(65)} | key`],
  ['SYNC_PEERS', 'names.example | ftp://names.example | https://a.example https://b.example'],
  ['SYNC_PEERS', 'https://a.example/?x=1 | https://a.example/#x | https://user:word@a.example'],
  ['SYNC_PEERS', `https://a.example/${'x'.repeat(255)} | https://a.example,b.example`],
  ['SYNC_INTERVAL_MS', '-1 | 86400001 | often'],
  ['MAX_BODY_BYTES', '1023 | 1073741825 | 72M | -1'],
  ['CONTENT_SECURITY_POLICY', '  | img-src *, sandbox | sandbox allow-same-origin | img-src\n* | img-src é'],
  ['CONTENT_SECURITY_POLICY', `img-src *; Sandbox allow-same-origin | ${'x'.repeat(1001)}`],
  ['MAX_CONTENT_BYTES', '0 | 1073741825 | 64M | -1 | 1.5'],
  ['CONTENT_TYPES', ', | image | image/ | /png | * | */* | image/p* | text/plain, | a b/c'],
  ['CONTENT_TYPES', 'text/plain;charset=utf-8'],
  [
    'ADMIN_TOKEN',
    `secret | ${'x'.repeat(1001)} | two words and more | pass=word-pass-word | пароль-пароль-пароль`,
  ],
  ['ARC_CALLBACK_TOKEN', 'secret | two words and more'],
  ['SEED', 'yes | None | network'],
  ['LOG_LEVEL', 'trace | INFO'],
  ['KNEX_URL', 'mysql://127.0.0.1 | mysql://127.0.0.1/ | mysql://127.0.0.1/a/b'],
  ['KNEX_URL', 'postgres://127.0.0.1/a | 127.0.0.1/a'],
  [
    'MONGO_URL',
    'mongodb://127.0.0.1 | mongodb://127.0.0.1/ | mongodb://127.0.0.1/a/b | mongodb://127.0.0.1/a.b',
  ],
  ['MONGO_URL', 'mongodb:///a | mongodb://a@b@127.0.0.1/a | mysql://127.0.0.1/a | 127.0.0.1/a'],
])('%s that cannot be is refused in one line that names it', (name, values) => {
  for (const value of values.split(' | ')) {
    const read = (): unknown => readConfig({ [name]: value })
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(new RegExp(`^${name}: [^\\n]+$`))
  }
})

test.each([
  'mongodb://127.0.0.1/a',
  'mongodb://user:pass%40word@one:27017,[::1]:27018/a?replicaSet=rs0&authSource=admin',
  'mongodb+srv://user@cluster.example/a',
])('MONGO_URL may be %s', (url) => {
  expect(readConfig({ MONGO_URL: url })).toMatchObject({ mongoUrl: url, knexUrl: undefined })
})

test('a store in two places is refused', () => {
  const both = { KNEX_URL: 'mysql://127.0.0.1/a', MONGO_URL: 'mongodb://127.0.0.1/a' }
  expect(() => readConfig(both)).toThrow(/^MONGO_URL: [^\n]*KNEX_URL[^\n]*$/)
})

test('of several that cannot be, the first is named', () => {
  expect(() => readConfig({ PORT: 'x', PROFILE: 'y' })).toThrow(/^PORT: /)
})
