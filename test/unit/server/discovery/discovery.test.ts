import { rm } from 'node:fs/promises'
import {
  HTTPSOverlayBroadcastFacilitator,
  HTTPSOverlayLookupFacilitator,
  LookupResolver,
  OverlayAdminTokenTemplate,
  P2PKH,
  PrivateKey,
  ProtoWallet,
  PushDrop,
  TopicBroadcaster,
  Transaction,
} from '@bsv/sdk'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { advertisementLock, advertisementUnlock } from '../../../../src/server/discovery/advertisement.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { advertise, HOST_KEY, tokensOf } from '../../../support/server/advertised-host.js'
import {
  OPERATOR,
  posted,
  submission,
  type TestServer,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'
import { freePort } from '../../../support/services/free-port.js'

const servers = useServers({ stay: true })
const TOPICS = ['tm_ship', 'tm_slap']
const chain = new FakeChain()
let server: TestServer
let env: Record<string, string>

beforeAll(async () => {
  const port = String(await freePort())
  env = {
    ...treeOf(chain.deployment),
    PORT: port,
    SERVER_PRIVATE_KEY: HOST_KEY.toHex(),
    HOSTING_URL: `http://127.0.0.1:${port}/`,
    DATA_DIR: await servers.folder(),
    ...OPERATOR,
  }
  server = await servers.start(env)
  await server.take(beefOf(chain.genesis))
})

const BAD_BODY = { status: 400, code: 'BAD_BODY', overlay: true }

interface Found {
  protocol: string
  domain: string
  topicOrService: string
}

/** The outpoints of all that `ls_slap` finds. */
async function outpoints(): Promise<string[]> {
  const { json } = await server.ask('/lookup', posted({ service: 'ls_slap', query: 'findAll' }))
  const { outputs } = json as { outputs: { beef: number[]; outputIndex: number }[] }
  return outputs.map(({ beef, outputIndex }) => `${Transaction.fromBEEF(beef).id('hex')}_${outputIndex}`)
}

/** What a lookup service finds, as the SDK reads it. */
async function find(service: string, query: unknown): Promise<Found[]> {
  const { status, json } = await server.ask('/lookup', posted({ service, query }))
  expect(status).toBe(200)
  return (json as { outputs: { beef: number[]; outputIndex: number }[] }).outputs.map(
    ({ beef, outputIndex }) => {
      const script = Transaction.fromBEEF(beef).outputs[outputIndex]?.lockingScript
      if (script === undefined) throw new Error('there is no such output')
      const { protocol, domain, topicOrService } = OverlayAdminTokenTemplate.decode(script)
      return { protocol, domain, topicOrService }
    },
  )
}

test('a client that knows this host alone as its tracker finds its topics and lookup services', async () => {
  const tokens = await tokensOf(chain, { url: server.url })
  const { status, json } = await advertise(server, tokens)
  const tm_ship = { outputsToAdmit: [0, 1], coinsToRetain: [] }
  const tm_slap = { outputsToAdmit: [2, 3, 4], coinsToRetain: [] }
  expect([status, json]).toEqual([200, { tm_ship, tm_slap }])
  const lookups = new HTTPSOverlayLookupFacilitator(undefined, true)
  const resolver = new LookupResolver({ slapTrackers: [server.url], facilitator: lookups })
  const facilitator = new HTTPSOverlayBroadcastFacilitator(undefined, true)
  const broadcaster = new TopicBroadcaster(['tm_names', 'tm_ordinals'], { resolver, facilitator })
  const mint = chain.mint('a')
  const answer = await broadcaster.broadcast(Transaction.fromBEEF(Array.from(beefOf(mint))))
  expect(answer).toMatchObject({ status: 'success', txid: mint.txid })
  const { outputs } = await resolver.query({ service: 'ls_names', query: { name: 'a' } })
  expect(outputs.map(({ beef }) => Transaction.fromBEEF(beef).id('hex'))).toEqual([mint.txid])
})

test('finds advertisements by topic, service, URL and key', async () => {
  const at = { domain: server.url }
  const ship = (topicOrService: string): Found => ({ protocol: 'SHIP', ...at, topicOrService })
  const slap = (topicOrService: string): Found => ({ protocol: 'SLAP', ...at, topicOrService })
  expect(await find('ls_ship', { topics: ['tm_names'] })).toEqual([ship('tm_names')])
  expect(await find('ls_ship', { topics: ['tm_others'] })).toEqual([])
  expect(await find('ls_slap', { service: 'ls_names' })).toEqual([slap('ls_names')])
  expect(await find('ls_slap', { domain: 'https://b.example' })).toEqual([])
  expect(await find('ls_ship', { domain: server.url, limit: 1, sortOrder: 'asc' })).toHaveLength(1)
  expect(await find('ls_ship', { domain: server.url, skip: 1 })).toHaveLength(1)
  for (const query of ['findAll', { findAll: true }, {}, { identityKey: HOST_KEY.toPublicKey().toString() }])
    expect(await find('ls_slap', query)).toHaveLength(3)
  expect(await find('ls_slap', { identityKey: new PrivateKey(12).toPublicKey().toString() })).toEqual([])
})

test.each([
  ['ls_ship', { service: 'ls_names' }],
  ['ls_slap', { topics: ['tm_names'] }],
  ['ls_ship', 'all'],
  ['ls_ship', null],
  ['ls_slap', { limit: -1 }],
])('%s refuses %j and says which forms there are', async (service, query) => {
  const error = expect.stringMatching(`^${service} takes `)
  expectError(await server.ask('/lookup', posted({ service, query })), { ...BAD_BODY, error })
})

test.each([
  ['of another key', { key: new PrivateKey(12) }],
  ['for something that is neither topic nor service', { tokens: [['SHIP', 'names']] }],
  ['for a service where a topic belongs', { tokens: [['SHIP', 'ls_names']] }],
] as const)('admits no token %s', async (_, other) => {
  const { url } = server
  const tokens =
    'tokens' in other
      ? { tokens: other.tokens.map(([protocol, topicOrService]) => ({ protocol, url, topicOrService })) }
      : { key: other.key }
  const { json } = await server.submit(beefOf(await tokensOf(chain, { url, ...tokens })), TOPICS)
  expect(json).toMatchObject({ tm_ship: { outputsToAdmit: [] }, tm_slap: { outputsToAdmit: [] } })
})

test('admits no token whose signature is of other fields', async () => {
  const url = 'http://host.example'
  const tokens = await tokensOf(chain, {
    url,
    tokens: [{ protocol: 'SHIP', url, topicOrService: 'tm_names' }],
  })
  const lockingScript = tokens.transaction.outputs[0]?.lockingScript.slice() ?? new Uint8Array()
  const at = Buffer.from(lockingScript).indexOf('host.example')
  lockingScript.set(Buffer.from('evil'), at)
  const forged = chain.spend({ outputs: [lockingScript] })
  const { json } = await server.submit(beefOf(forged), TOPICS)
  expect(json).toMatchObject({ tm_ship: { outputsToAdmit: [] } })
})

test.each(['SHIP', 'SLAP'] as const)(
  'anyone can verify a %s token with nothing but the SDK, as other hosts do',
  async (protocol) => {
    const topicOrService = protocol === 'SHIP' ? 'tm_names' : 'ls_names'
    const lock = await advertisementLock(HOST_KEY, { protocol, url: 'https://host.example', topicOrService })
    const { fields, lockingPublicKey } = PushDrop.decode(lock)
    const anyone = new ProtoWallet('anyone')
    const name = protocol === 'SHIP' ? 'service host interconnect' : 'service lookup availability'
    const counterparty = HOST_KEY.toPublicKey().toString()
    const key = { protocolID: [2, name] as [2, string], keyID: '1', counterparty }
    const [data, signature] = [fields.slice(0, 4).flat(), fields[4] ?? []]
    expect(await anyone.verifySignature({ data, signature, ...key })).toEqual({ valid: true })
    expect((await anyone.getPublicKey(key)).publicKey).toBe(lockingPublicKey.toString())
  },
)

test('rebuilding the index keeps the tokens', async () => {
  await server.stop()
  await rm(storeFiles(server.dataDir).index)
  server = await servers.start(env)
  await untilReady(server)
  expect(await find('ls_ship', { topics: ['tm_names'] })).toHaveLength(1)
  expect(await find('ls_slap', 'findAll')).toHaveLength(3)
})

test('a spent token is revoked for good, whoever submits it again', async () => {
  const url = server.url
  const token = await tokensOf(chain, {
    url,
    tokens: [{ protocol: 'SHIP', url, topicOrService: 'tm_other' }],
  })
  await advertise(server, token)
  expect(await find('ls_ship', { topics: ['tm_other'] })).toHaveLength(1)
  const sourceTransaction = Transaction.fromBEEF(Array.from(beefOf(token)))
  const spend = new Transaction(1)
  const unlockingScriptTemplate = advertisementUnlock(HOST_KEY, 'SHIP')
  spend.addInput({ sourceTransaction, sourceOutputIndex: 0, unlockingScriptTemplate })
  spend.addOutput({ satoshis: 1, lockingScript: new P2PKH().lock(HOST_KEY.toAddress()) })
  await spend.sign()
  const revoked = await server.submit(Uint8Array.from(spend.toBEEF()), ['tm_ship'])
  expect(revoked.json).toEqual({ tm_ship: { outputsToAdmit: [], coinsToRetain: [0] } })
  expect(await find('ls_ship', { topics: ['tm_other'] })).toEqual([])
  await advertise(server, token)
  expect(await find('ls_ship', { topics: ['tm_other'] })).toEqual([])
  const lockingScript = token.transaction.outputs[0]?.lockingScript ?? new Uint8Array()
  await server.submit(beefOf(chain.spend({ outputs: [lockingScript] })), TOPICS)
  expect(await find('ls_ship', { topics: ['tm_other'] })).toEqual([])
})

test('copies of the tokens in a transaction of a stranger are not found', async () => {
  const { transaction } = await tokensOf(chain, { url: server.url })
  const ours = await outpoints()
  const outputs = Array.from({ length: 6 }, () => transaction.outputs).flat()
  const copy = chain.spend({ outputs })
  await server.take(beefOf(copy), TOPICS)
  expect(await outpoints()).toEqual(ours)
  expectError(await advertise(server, copy, new PrivateKey(12)), BAD_BODY)
  expect(await outpoints()).toEqual(ours)
})

test.each([
  '',
  'true',
  `${'0'.repeat(64)}.`,
  `${'0'.repeat(64)}.${'30'.repeat(70)}`,
  `${'0'.repeat(64)}.${'3'.repeat(71)}`,
])('refuses a submission with the approval %j, and stores nothing of it', async (approval) => {
  const page = chain.inscribe({ contentType: 'text/plain', body: utf8(`with ${approval}`) })
  const sent = submission(beefOf(page), ['tm_ordinals'])
  const headers = { ...sent.headers, 'X-Advertisement': approval }
  expectError(await server.ask('/submit', { ...sent, headers }), BAD_BODY)
  expect((await server.ask(`/content/${page.outpoint(0)}`)).status).toBe(404)
})

test('approvals of what advertises nothing, however many, hide no live token', async () => {
  const ours = await outpoints()
  expect(ours).not.toHaveLength(0)
  for (let count = 0; count < 51; count++) {
    const { status } = await advertise(server, chain.spend({ outputs: [] }))
    expect(status).toBe(200)
  }
  expect(await outpoints()).toEqual(ours)
})

test('refuses a BEEF of more forged tokens than a host ever has: each is the check of a signature', async () => {
  const { transaction } = await tokensOf(chain, { url: server.url })
  const script = transaction.outputs[0]?.lockingScript ?? new Uint8Array()
  const forged = Array.from({ length: 31 }, () => ({ satoshis: 1, lockingScript: script }))
  const coin = { satoshis: 100, lockingScript: OPEN_LOCK }
  const open = { satoshis: 50, lockingScript: OPEN_LOCK }
  const coins = chain.spend({ outputs: Array.from({ length: 7 }, () => coin) })
  const spenders = Array.from({ length: 7 }, (_, vout) =>
    chain.spend({ inputs: [{ transaction: coins, vout }], outputs: [open, ...forged] }),
  )
  const beefWith = (ancestors: FakeTransaction[]): Uint8Array => {
    const subject = chain.spend({ inputs: ancestors, outputs: [open] })
    return beefOf(subject, { with: [coins, ...ancestors], unproven: ancestors, proven: false })
  }
  const refused = await server.submit(beefWith(spenders), ['tm_ordinals'])
  expectError(refused, { status: 413, code: 'TOO_LARGE', overlay: true })
  expect((await server.submit(beefWith(spenders.slice(1)), ['tm_ordinals'])).status).toBe(200)
})

test('a restart keeps the tokens, and another URL hides those of the old one from all but their owner', async () => {
  const before = server.url
  await server.stop()
  server = await servers.start(env)
  expect(await find('ls_ship', 'findAll')).toHaveLength(2)
  const state = async () => await server.node.overlay.discovery?.state()
  expect(await state()).toEqual({ url: before, missing: [], otherUrls: [] })
  await server.stop()
  server = await servers.start({ ...env, HOSTING_URL: 'https://host.example' })
  expect(await state()).toEqual({
    url: 'https://host.example',
    missing: ['tm_names', 'tm_ordinals', 'ls_names', 'ls_ordinals', 'ls_ship'],
    otherUrls: [before],
  })
  expect(await find('ls_ship', 'findAll')).toEqual([])
  expect(await find('ls_ship', { topics: ['tm_names'] })).toEqual([])
  expect(await find('ls_ship', { domain: before })).toHaveLength(2)
  expect(await find('ls_ship', { identityKey: HOST_KEY.toPublicKey().toString() })).toHaveLength(2)
})

test('an operator can block a token', async () => {
  await server.stop()
  server = await servers.start(env)
  const query = { topics: ['tm_names'] }
  const { json } = await server.ask('/lookup', posted({ service: 'ls_ship', query }))
  const [output] = (json as { outputs: { beef: number[]; outputIndex: number }[] }).outputs
  const outpoint = `${Transaction.fromBEEF(output?.beef ?? []).id('hex')}_${output?.outputIndex}`
  await server.block({ outpoint })
  expect(await find('ls_ship', { topics: ['tm_names'] })).toEqual([])
})

test.each(['SERVER_PRIVATE_KEY', 'HOSTING_URL'])('without %s there is no discovery', async (missing) => {
  const { [missing]: _, PORT, DATA_DIR, ...others } = env
  const host = await servers.start(others)
  expect((await host.ask('/lookup', posted({ service: 'ls_ship', query: 'findAll' }))).status).toBe(400)
  expectError(await host.submit(beefOf(await tokensOf(chain, { url: server.url })), TOPICS), BAD_BODY)
})
