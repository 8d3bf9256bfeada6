import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { fieldClients } from '../../support/clients/field-clients.js'
import {
  beefOf,
  FakeChain,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { OPERATOR, type TestServer, treeOf, useServers } from '../../support/server/test-server.js'

// The packages of the 1sat field, as npm has them, against the mainnet prefixes.

const servers = useServers()
const installed = await fieldClients()

if ('missing' in installed) {
  test.skip(`the clients of the 1sat field (${installed.missing})`, () => undefined)
} else {
  const { clients } = installed
  const chain = new FakeChain({ nameContentType: 'application/op-ns' })
  const a = chain.mint('a')
  const ab = chain.mint('ab')
  const funding = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] })
  const cover = chain.spend({
    inputs: [{ transaction: funding, vout: 0 }],
    outputs: [
      {
        satoshis: 1,
        lockingScript: inscriptionScript({
          contentType: 'text/plain',
          body: utf8('a cover'),
          lock: OPEN_LOCK,
          suffix: mapTail({ app: 'shop', name: 'a card' }),
        }),
      },
    ],
  })
  const sold = chain.spend({
    inputs: [{ transaction: cover, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: p2pkh(7) }],
  })
  const hidden = chain.inscribe({ contentType: 'text/plain', body: utf8('hidden') })
  const nowhere = 'ee'.repeat(32)
  let server: TestServer

  const status = async (answer: Promise<unknown>): Promise<number> =>
    await answer.then(
      () => 200,
      (error: unknown) => (error as { status: number }).status,
    )

  beforeAll(async () => {
    server = await servers.start({
      ...treeOf(chain.deployment),
      PROFILE: 'mainnet',
      CHAIN_TRACKER: 'scripts-only',
      ...OPERATOR,
    })
    const overlay = new clients.OverlayClient(server.url)
    for (const mint of [chain.genesis, a, ab]) await overlay.submit(beefOf(mint), ['tm_opns'])
    await overlay.submit(beefOf(cover, { with: [funding] }), ['tm_ordinals'])
    await overlay.submit(beefOf(sold, { with: [cover], proven: false }), ['tm_ordinals'])
    await overlay.submit(beefOf(hidden), ['tm_ordinals'])
    await server.block({ outpoint: hidden.outpoint(0) })
  })

  describe('OneSatServices', () => {
    test('learns which clients this host serves', async () => {
      const services = new clients.OneSatServices('main', server.url)
      expect(await services.getCapabilities()).toEqual(['beef', 'txo', 'overlay', 'ordfs'])
      expect((await server.ask('/1sat/capabilities')).json).toEqual(['beef', 'txo', 'overlay', 'ordfs'])
    })

    test('finds what is here without an index of the whole chain, and nothing where one is needed', async () => {
      const services = new clients.OneSatServices('main', server.url)
      expect((await services.getRawTx(ab.txid)).rawTx).toEqual(Array.from(ab.raw))
      expect((await services.getBeefForTxid(ab.txid)).findTxid(ab.txid)).toBeDefined()
      expect(await services.isUtxo({ txid: ab.txid, vout: 2 })).toBe(true)
      expect(await services.isUtxo({ txid: a.txid, vout: 1 })).toBe(false)
      expect(await services.getUtxoStatus('', undefined, ab.outpoint(2))).toEqual({
        name: '1sat-api',
        status: 'success',
        isUtxo: true,
        details: [{ txid: ab.txid, index: 2, satoshis: 1, height: ab.height }],
      })
      expect(await status(services.owner.getBalance('1BitcoinEaterAddressDontSendf59kuE'))).toBe(404)
      expect(await status(services.arcade.getPolicy())).toBe(404)
    })
  })

  describe('OverlayClient', () => {
    const client = () => new clients.OverlayClient(server.url)

    test('lists topics and lookup services', async () => {
      expect(Object.keys(await client().listTopicManagers())).toEqual([
        ...['tm_names', 'tm_ordinals', 'tm_opns', 'tm_OpNS'],
      ])
      expect(Object.keys(await client().listLookupServiceProviders())).toEqual([
        'ls_names',
        'ls_ordinals',
        'ls_opns',
        'ls_OpNS',
      ])
    })

    test('submits a transaction, and is told why one is refused', async () => {
      const note = chain.inscribe({ contentType: 'text/plain', body: utf8('a note') })
      expect(await client().submit(beefOf(note), ['tm_ordinals'])).toMatchObject({
        tm_ordinals: { outputsToAdmit: [0] },
      })
      await expect(client().submit(beefOf(note), ['tm_other'])).rejects.toThrow(/tm_other/)
      await expect(client().submit(beefOf(note), ['tm_other'])).rejects.toBeInstanceOf(clients.HttpError)
    })
  })

  describe('BeefClient', () => {
    const client = () => new clients.BeefClient(server.url)

    test('gets a mined transaction with its proof', async () => {
      const transaction = clients.Transaction.fromBEEF(Array.from(await client().getBeef(ab.txid)))
      expect(transaction.id('hex')).toBe(ab.txid)
      expect(transaction.merklePath).toBeDefined()
    })

    test('gets a transaction that is not mined with its ancestors', async () => {
      const transaction = clients.Transaction.fromBEEF(Array.from(await client().getBeef(sold.txid)))
      expect(transaction.id('hex')).toBe(sold.txid)
      expect(transaction.merklePath).toBeUndefined()
      expect(transaction.inputs[0]?.sourceTransaction?.id('hex')).toBe(cover.txid)
    })

    test('gets the bytes of a transaction, and its proof where it is mined', async () => {
      expect(toHex(await client().getRawTx(sold.txid))).toBe(toHex(sold.raw))
      const proof = clients.MerklePath.fromBinary(Array.from(await client().getProof(ab.txid)))
      expect(proof.blockHeight).toBe(ab.height)
      expect(proof.computeRoot(ab.txid)).toBe(ab.txid)
      expect(await status(client().getProof(sold.txid))).toBe(404)
    })

    test.each(['getBeef', 'getRawTx', 'getProof'] as const)(
      '%s is refused what is blocked and finds nothing else',
      async (method) => {
        expect(await status(client()[method](hidden.txid))).toBe(451)
        expect(await status(client()[method](nowhere))).toBe(404)
        expect(await status(client()[method]('x'))).toBe(400)
      },
    )
  })

  describe('TxoClient', () => {
    const client = () => new clients.TxoClient(server.url)

    test('gets an output with what it asks for', async () => {
      const score = cover.height
      expect(await client().get(cover.outpoint(0))).toEqual({
        outpoint: cover.outpoint(0),
        score,
        spend: sold.txid,
      })
      const all = { sats: true, spend: true, block: true, tags: ['insc'] }
      expect(await client().get(cover.outpoint(0), all)).toEqual({
        outpoint: cover.outpoint(0),
        score,
        satoshis: 1,
        blockHeight: cover.height,
        blockIdx: 0,
        spend: sold.txid,
      })
      const unmined = await client().get(sold.outpoint(0), all)
      expect(unmined).toEqual({ outpoint: sold.outpoint(0), score: expect.any(Number), satoshis: 1 })
      // After everything that is mined: seconds since 1970.
      expect(unmined.score).toBeGreaterThan(1_700_000_000)
      expect(unmined.score).toBeLessThan(Date.now() / 1000 + 60)
    })

    test('gets what spends an output', async () => {
      expect(await client().getSpend(cover.outpoint(0))).toBe(sold.txid)
      expect(await client().getSpend(a.outpoint(1))).toBe(ab.txid)
      expect(await client().getSpend(ab.outpoint(2))).toBeNull()
      expect(await client().getSpend(`${ab.txid}.2`)).toBeNull()
    })

    test('finds no output of which this host does not know whether it is spent', async () => {
      // The change of a mint, which no topic holds.
      for (const outpoint of [ab.outpoint(3), `${nowhere}_0`]) {
        expect(await status(client().get(outpoint))).toBe(404)
        expect(await status(client().getSpend(outpoint))).toBe(404)
      }
    })

    test('is refused what is blocked', async () => {
      expect(await status(client().get(hidden.outpoint(0)))).toBe(451)
      expect(await status(client().getSpend(hidden.outpoint(0)))).toBe(451)
    })
  })

  describe('OrdfsClient', () => {
    test('gets content and metadata', async () => {
      const client = new clients.OrdfsClient(server.url)
      const { data, headers } = await client.getContent(cover.outpoint(0), { seq: -1, map: true })
      expect(Buffer.from(data).toString('utf8')).toBe('a cover')
      expect(headers).toMatchObject({ outpoint: sold.outpoint(0), origin: cover.outpoint(0), sequence: 1 })
      expect(await client.getMetadata(sold.outpoint(0), -2)).toMatchObject({ origin: cover.outpoint(0) })
      expect(await client.bulkMetadata([`${sold.outpoint(0)}:-2`])).toMatchObject({
        [`${sold.outpoint(0)}:-2`]: { contentType: 'text/plain' },
      })
    })

    test('tells @1sat/actions the tags of an ordinal and of a name', async () => {
      const services = new clients.OneSatServices('main', server.url)
      expect(await clients.resolveOrdinalTags({ services }, sold.outpoint(0))).toEqual({
        tags: ['type:text/plain', `origin:${cover.outpoint(0)}`, 'name:a card'],
        basket: '1sat',
      })
      expect(await clients.resolveOrdinalTags({ services }, ab.outpoint(2))).toEqual({
        tags: ['type:application/op-ns', `origin:${ab.outpoint(2)}`, 'name:ab'],
        basket: 'opns',
      })
    })
  })

  describe('what the field’s libraries inscribe is served', () => {
    const client = () => new clients.OverlayClient(server.url)
    const served = async (txid: string): Promise<string> =>
      (await server.ask(`/content/${txid}_0`)).body.toString('utf8')

    test('js-1sat-ord', async () => {
      const key = new clients.PrivateKey(7)
      const address = key.toAddress()
      const lock = new clients.P2PKH().lock(address)
      const funding = chain.spend({
        inputs: [],
        outputs: [{ satoshis: 10_000, lockingScript: Uint8Array.from(lock.toBinary()) }],
      })
      const script = Buffer.from(lock.toBinary()).toString('base64')
      const { tx } = await clients.createOrdinals({
        utxos: [{ satoshis: 10_000, txid: funding.txid, vout: 0, script }],
        destinations: [
          {
            address,
            inscription: {
              dataB64: Buffer.from('by a library').toString('base64'),
              contentType: 'text/plain',
            },
          },
        ],
        paymentPk: key,
        metaData: { app: 'shop', type: 'ord', name: 'by a library' },
      })
      const raw = Uint8Array.from(tx.toBinary())
      const made = { ...funding, txid: tx.id('hex'), raw }
      await client().submit(beefOf(made, { with: [funding], proven: false }), ['tm_ordinals'])
      expect(await served(made.txid)).toBe('by a library')
      expect((await server.ask(`/1sat/ordfs/metadata/${made.txid}_0`)).json).toMatchObject({
        map: { app: 'shop', name: 'by a library' },
        owner: address,
      })
    })

    test('@1sat/templates', async () => {
      const script = clients.Inscription.fromText('by a template', 'text/plain').lock() as {
        toBinary(): number[]
      }
      const made = chain.spend({
        inputs: [],
        outputs: [{ satoshis: 1, lockingScript: Uint8Array.from(script.toBinary()) }],
      })
      await client().submit(beefOf(made), ['tm_ordinals'])
      expect(await served(made.txid)).toBe('by a template')
    })
  })
}
