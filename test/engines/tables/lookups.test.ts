import type { LookupService, OutputAdmittedByTopic } from '@bsv/overlay'
import { BlockedError } from '../../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import createNamesLookupService from '../../../backend/src/lookup-services/NamesLookupServiceFactory.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import createOrdinalsLookupService from '../../../backend/src/lookup-services/OrdinalsLookupServiceFactory.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { History, type Notice } from '../../support/graph/history.js'
import { beefOf, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import { closeStores, onEachSqlEngine, openStore } from '../../support/storage/stores.js'

afterEach(closeStores)

const coin = { satoshis: 1, lockingScript: p2pkh(4) }

async function deliver(services: LookupService[], notices: Notice[]): Promise<void> {
  for (const notice of notices)
    for (const service of services) {
      if ('admitted' in notice) await service.outputAdmittedByTopic(notice.admitted)
      else if (service.spendNotificationMode !== 'none') await service.outputSpent?.(notice.spent)
    }
}

async function asked(service: LookupService, query: unknown): Promise<string[]> {
  const found = await service.lookup({ service: 'any', query })
  if (!Array.isArray(found)) throw new Error('an answer is a list of outputs')
  return found.map(({ txid, outputIndex }) => formatOutpoint({ txid, vout: outputIndex }))
}

/** Names that stay, move, move away, and are burnt. */
async function world() {
  const history = new History()
  const { chain } = history
  await history.submit(chain.genesis)
  const mints: Record<string, FakeTransaction> = {}
  for (const name of ['a', 'ab', 'b', 'a0', 'abc', 'c']) mints[name] = await history.submit(chain.mint(name))
  const mintOf = (name: string): FakeTransaction => {
    const mint = mints[name]
    if (mint === undefined) throw new RangeError(`${name} is not minted`)
    return mint
  }
  const moved = async (transaction: FakeTransaction, vout: number, satoshis = 1): Promise<FakeTransaction> =>
    await history.submit(
      chain.spend({ inputs: [{ transaction, vout }], outputs: [{ ...coin, satoshis }] }),
      'never',
    )
  const ab = await moved(await moved(mintOf('ab'), 2), 0)
  await moved(mintOf('b'), 2, 5)
  const opened = await openStore()
  const { store } = opened
  const { deployment } = chain
  const reader = new BlocklistFilter(store)
  const names = new NamesLookupService({ reader, writer: store, deployment })
  const ordinals = new OrdinalsLookupService({ reader, writer: store })
  await deliver([names, ordinals], history.notices)
  return { history, chain, mintOf, ab, opened, store, names, ordinals }
}

const text = (outpoint: Outpoint): string => formatOutpoint(outpoint)

describe('ls_names answers', () => {
  test('the current output of a name', async () => {
    const { names, mintOf, ab } = await world()
    expect(await asked(names, { name: 'a' })).toEqual([mintOf('a').outpoint(2)])
    expect(await asked(names, { name: 'ab' })).toEqual([ab.outpoint(0)])
    expect(await asked(names, { name: 'b' })).toEqual([])
    expect(await asked(names, { name: 'never-minted' })).toEqual([])
  })

  test('the origin of a name, wherever it went', async () => {
    const { names, mintOf } = await world()
    for (const name of ['a', 'ab', 'b', 'abc'])
      expect(await asked(names, { origin: name })).toEqual([mintOf(name).outpoint(2)])
    expect(await asked(names, { origin: 'abd' })).toEqual([])
  })

  test('where mining of a name goes on', async () => {
    const { names, chain } = await world()
    const from = async (name: string): Promise<string[]> => await asked(names, { mine: name })
    expect(await from('abcdef')).toEqual([text(chain.node('abc').outpoint)])
    expect(await from('abd')).toEqual([text(chain.node('ab').outpoint)])
    expect(await from('a00')).toEqual([text(chain.node('a0').outpoint)])
    expect(await from('zz')).toEqual([text(chain.node('').outpoint)])
    for (const taken of ['a', 'ab', 'abc', 'b', 'c']) expect(await from(taken)).toEqual([])
  })

  test('the live node of a prefix', async () => {
    const { names, chain } = await world()
    for (const node of ['', 'a', 'ab', 'abc', 'b'])
      expect(await asked(names, { node })).toEqual([text(chain.node(node).outpoint)])
    expect(await asked(names, { node: 'abcd' })).toEqual([])
  })

  test('which outpoints are origins', async () => {
    const { names, mintOf, ab, chain } = await world()
    const [a, abc] = [mintOf('a'), mintOf('abc')]
    const origins = [
      a.outpoint(2).toUpperCase(),
      abc.outpoint(2).replace('_', '.'),
      a.outpoint(2),
      a.outpoint(1),
      a.outpoint(0),
      ab.outpoint(0),
      chain.genesis.outpoint(0),
      `${'00'.repeat(32)}_2`,
    ]
    expect((await asked(names, { origins })).sort()).toEqual([a.outpoint(2), abc.outpoint(2)].sort())
    expect(await asked(names, { origins: [] })).toEqual([])
    const thousand = Array.from({ length: 1000 }, (_, vout) => `${abc.txid}_${vout}`)
    expect(await asked(names, { origins: thousand })).toEqual([abc.outpoint(2)])
  })

  test('origins by prefix, in order and page by page', async () => {
    const { names, mintOf } = await world()
    const origins = (...all: string[]): string[] => all.map((name) => mintOf(name).outpoint(2))
    expect(await asked(names, { prefix: '' })).toEqual(origins('a', 'a0', 'ab', 'abc', 'b', 'c'))
    expect(await asked(names, { prefix: 'a' })).toEqual(origins('a', 'a0', 'ab', 'abc'))
    expect(await asked(names, { prefix: 'a', limit: 2 })).toEqual(origins('a', 'a0'))
    expect(await asked(names, { prefix: 'a', limit: 2, after: 'a0' })).toEqual(origins('ab', 'abc'))
    expect(await asked(names, { prefix: 'a', after: 'abc' })).toEqual([])
    expect(await asked(names, { prefix: 'q' })).toEqual([])
  })

  const name = 'a'
  test.each<[unknown]>([
    [undefined],
    [null],
    ['a'],
    [7],
    [[]],
    [{}],
    [{ name: '' }],
    [{ name: 'A' }],
    [{ name: 'a.b' }],
    [{ name: 'a'.repeat(256) }],
    [{ name: 7 }],
    [{ name, origin: name }],
    [{ name, extra: true }],
    [{ origin: 'ä' }],
    [{ mine: '' }],
    [{ node: 'A' }],
    [{ node: 'a'.repeat(256) }],
    [{ origins: 'x' }],
    [{ origins: ['x'] }],
    [{ origins: ['ab'.repeat(32)] }],
    [{ origins: new Array(1001).fill(`${'ab'.repeat(32)}_0`) }],
    [{ prefix: 'A' }],
    [{ prefix: 'a', limit: 0 }],
    [{ prefix: 'a', limit: 101 }],
    [{ prefix: 'a', limit: 1.5 }],
    [{ prefix: 'a', limit: '2' }],
    [{ prefix: 'a', after: 'A' }],
    [{ limit: 5 }],
  ])('%j with the forms there are', async (query) => {
    const { store } = await openStore()
    const names = new NamesLookupService({ reader: store, writer: store, deployment: undefined })
    await expect(names.lookup({ service: 'ls_names', query })).rejects.toMatchObject({
      name: 'QueryError',
      code: 'BAD_BODY',
      message: expect.stringContaining('{origin: name}'),
    })
  })
})

describe('ls_ordinals answers', () => {
  test('an output that is held', async () => {
    const { ordinals, mintOf, ab } = await world()
    for (const outpoint of [mintOf('a').outpoint(2), mintOf('b').outpoint(2), ab.outpoint(0)])
      expect(await asked(ordinals, { outpoint })).toEqual([outpoint])
    expect(await asked(ordinals, { outpoint: ab.outpoint(0).replace('_', '.') })).toEqual([ab.outpoint(0)])
    for (const outpoint of [mintOf('a').outpoint(0), ab.outpoint(1), `${'00'.repeat(32)}_0`])
      expect(await asked(ordinals, { outpoint })).toEqual([])
  })

  test('an ordinal at a step of its life, whichever of its outputs is asked for', async () => {
    const { ordinals, mintOf, ab } = await world()
    const [origin, tip] = [mintOf('ab').outpoint(2), ab.outpoint(0)]
    for (const outpoint of [origin, tip]) {
      expect(await asked(ordinals, { outpoint, seq: -2 })).toEqual([origin])
      expect(await asked(ordinals, { outpoint, seq: 0 })).toEqual([origin])
      expect(await asked(ordinals, { outpoint, seq: 2 })).toEqual([tip])
      expect(await asked(ordinals, { outpoint, seq: -1 })).toEqual([tip])
      expect(await asked(ordinals, { outpoint, seq: 3 })).toEqual([])
    }
    expect(await asked(ordinals, { outpoint: `${'00'.repeat(32)}_0`, seq: 0 })).toEqual([])
  })

  test.each<[unknown]>([
    [undefined],
    [{}],
    ['x'],
    [{ outpoint: `${'ab'.repeat(32)}_0`, seq: -3 }],
    [{ outpoint: `${'ab'.repeat(32)}_0`, seq: 1.5 }],
    [{ outpoint: `${'ab'.repeat(32)}_0`, seq: 2 ** 53 }],
    [{ outpoint: `${'ab'.repeat(32)}_0`, seq: '1' }],
    [{ outpoint: 'x' }],
    [{ outpoint: 'ab'.repeat(32) }],
    [{ outpoint: `${'ab'.repeat(32)}_4294967296` }],
    [{ outpoint: { txid: 'ab'.repeat(32), vout: 0 } }],
    [{ outpoint: `${'ab'.repeat(32)}_0`, extra: 1 }],
  ])('%j with the forms there are', async (query) => {
    const { store } = await openStore()
    const ordinals = new OrdinalsLookupService({ reader: store, writer: store })
    await expect(ordinals.lookup({ service: 'ls_ordinals', query })).rejects.toMatchObject({
      name: 'QueryError',
      code: 'BAD_BODY',
      message: expect.stringContaining('{outpoint: "<txid>_<vout>", seq}'),
    })
  })
})

test('a name that pays for the mint of another ends there, and the other one begins', async () => {
  const history = new History()
  const { chain } = history
  await history.submit(chain.genesis)
  const a = await history.submit(chain.mint('a'))
  const { txid } = history.know(chain.spend({ inputs: [], outputs: [coin] }))
  // Node, plain coin, name: by the arithmetic of ordinals the name would go into output 2.
  const funding = [
    { txid, vout: 0 },
    { transaction: a, vout: 2 },
  ]
  const b = await history.submit(chain.mint('b', { funding }), 'never')
  const { store } = await openStore()
  const { deployment } = chain
  const names = new NamesLookupService({ reader: store, writer: store, deployment })
  await deliver([names, new OrdinalsLookupService({ reader: store, writer: store })], history.notices)
  expect((await store.ordinals.output({ txid: b.txid, vout: 2 }))?.previous).toEqual({
    txid: a.txid,
    vout: 2,
  })
  expect(await asked(names, { name: 'b' })).toEqual([b.outpoint(2)])
  expect(await asked(names, { name: 'a' })).toEqual([])
})

describe('a notice', () => {
  test('of another topic changes nothing', async () => {
    const { history, opened, names, ordinals } = await world()
    const before = await opened.rows()
    const fresh = history.chain.inscribe({ contentType: 'text/plain', body: utf8('x') })
    const atomicBEEF = Array.from(beefOf(fresh))
    await deliver(
      [names, ordinals],
      [
        { admitted: { mode: 'whole-tx', topic: 'tm_other', outputIndex: 0, atomicBEEF } },
        {
          spent: {
            mode: 'txid',
            topic: 'tm_other',
            txid: fresh.txid,
            outputIndex: 0,
            spendingTxid: fresh.txid,
          },
        },
      ],
    )
    expect(await opened.rows()).toEqual(before)
  })

  test('of a name is passed over by a host that follows no tree', async () => {
    const { history } = await world()
    const opened = await openStore()
    const before = await opened.rows()
    const { store } = opened
    const names = new NamesLookupService({ reader: store, writer: store, deployment: undefined })
    await deliver([names], history.notices)
    expect(await opened.rows()).toEqual(before)
    expect(await asked(names, { mine: 'a' })).toEqual([])
  })

  test('of an eviction makes the output go, for good', async () => {
    const { history, names, ordinals, mintOf } = await world()
    const a = mintOf('a')
    await names.outputEvicted(a.txid, 2)
    await deliver([names, ordinals], history.notices)
    for (const query of [{ name: 'a' }, { origin: 'a' }])
      await expect(asked(names, query)).rejects.toBeInstanceOf(BlockedError)
    expect(await asked(names, { origins: [a.outpoint(2)] })).toEqual([])
    await expect(asked(ordinals, { outpoint: a.outpoint(2) })).rejects.toBeInstanceOf(BlockedError)
    expect(await asked(names, { origin: 'ab' })).toEqual([mintOf('ab').outpoint(2)])
  })

  test('of an eviction of what is not proven is a rejection, until the network has it', async () => {
    const { ordinals, store, ab } = await world()
    const find = () => asked(ordinals, { outpoint: ab.outpoint(0) })
    const before = await find()
    expect(before).toHaveLength(1)
    await ordinals.outputEvicted(ab.txid, 0)
    expect(await find()).toEqual([])
    await store.sightings.record([{ txid: ab.txid, status: 'seen' }])
    expect(await find()).toEqual(before)
  })

  test('without its transaction is an error', async () => {
    const { chain, store, mintOf } = await world()
    const names = new NamesLookupService({ reader: store, writer: store, deployment: chain.deployment })
    expect(names.admissionMode).toBe('whole-tx')
    const notice: OutputAdmittedByTopic = {
      mode: 'locking-script',
      topic: 'tm_names',
      txid: mintOf('a').txid,
      outputIndex: 2,
      satoshis: 1,
      lockingScript: undefined as never,
    }
    await expect(names.outputAdmittedByTopic(notice)).rejects.toThrow('whole-tx')
  })
})

onEachSqlEngine((stores) => {
  afterEach(stores.closeStores)

  test('the plugin’s factories make the same services over a host’s database', async () => {
    const { history, ab, chain } = await world()
    const fresh = await stores.openStore()
    const { database } = fresh
    const { deployment } = chain
    const names = createNamesLookupService(database.writer, { deployment })
    const ordinals = createOrdinalsLookupService(database.writer)
    await deliver([names.service, ordinals.service], history.notices)
    expect(await asked(names.service, { name: 'ab' })).toEqual([ab.outpoint(0)])
    expect(await asked(ordinals.service, { outpoint: ab.outpoint(0) })).toEqual([ab.outpoint(0)])
  })
})

test('the services say what they are', async () => {
  const { store } = await openStore()
  const names = new NamesLookupService({ reader: store, writer: store, deployment: undefined })
  const ordinals = new OrdinalsLookupService({ reader: store, writer: store })
  expect(await names.getMetaData()).toMatchObject({ name: 'Name lookup' })
  expect(await ordinals.getMetaData()).toMatchObject({ name: 'Ordinal lookup' })
  for (const form of ['name', 'origin', 'mine', 'node', 'origins', 'prefix'])
    expect(await names.getDocumentation()).toContain(`{"${form}"`)
  expect(await ordinals.getDocumentation()).toContain('{"outpoint"')
})
