import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()

/** A server that follows a tree, and coins that pay for what is not proven. */
async function tree() {
  const chain = new FakeChain()
  const server = await start(treeOf(chain.deployment))
  const coins = Array.from({ length: 20 }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ inputs: [], outputs: coins })
  let spent = 0
  const coin = () => ({ transaction: purse, vout: spent++ })
  expect((await server.submit(beefOf(chain.genesis))).status).toBe(200)
  /** Submits what is not proven, with what is not proven before it. */
  const submit = async (transaction: FakeTransaction, ...before: FakeTransaction[]) =>
    await server.submit(
      beefOf(transaction, { proven: false, with: [chain.genesis, purse, ...before], unproven: before }),
    )
  return { chain, server, coin, purse, submit }
}

const originOf = async (server: TestServer, name: string): Promise<unknown> =>
  (await server.ask(`/svc/names/origin/${name}`)).json

test('a proof activates a whole branch: its names, nodes, origins and contents are answered, and those of the other no more', async () => {
  const { chain, server, coin, submit } = await tree()
  const root = chain.node('')
  const a = chain.mint('a', { funding: [coin()] })
  const ab = chain.mint('ab', { funding: [coin()] })
  const moved = chain.spend({
    inputs: [{ transaction: ab, vout: 2 }, coin()],
    outputs: [{ satoshis: 1, lockingScript: p2pkh(7) }],
  })
  for (const [transaction, ...before] of [[a], [ab, a]] as const)
    expect(await submit(transaction, ...before)).toMatchObject({ status: 200 })
  // The name is moved on by somebody who knows its key: proven, as these scripts carry no signature.
  const competing = chain.mint('b', { from: root, funding: [coin()] })
  expect(await submit(competing)).toMatchObject({ status: 409, json: { code: 'CONFLICT', txid: a.txid } })
  const unproven = { proven: false, seen: false }
  expect(await originOf(server, 'ab')).toEqual({ name: 'ab', outpoint: ab.outpoint(2), ...unproven })

  expect((await server.submit(beefOf(competing))).status).toBe(200)
  expect(await originOf(server, 'b')).toEqual({ name: 'b', outpoint: competing.outpoint(2) })
  for (const name of ['a', 'ab']) expect(await originOf(server, name)).toMatchObject({ code: 'NOT_FOUND' })
  expect((await server.ask('/svc/names/mine/abc')).json).toEqual({
    domain: '',
    outpoint: competing.outpoint(0),
  })
  expect((await server.ask(`/content/${ab.outpoint(2)}`)).status).toBe(404)
  expect((await server.ask(`/svc/gateway/metadata/${ab.outpoint(2)}:-1`)).status).toBe(404)
  const genuine = await server.ask('/svc/names/origins', posted([a.outpoint(2), competing.outpoint(2)]))
  expect(genuine.json).toEqual({ [a.outpoint(2)]: false, [competing.outpoint(2)]: true })
  const listed = await server.ask('/svc/names?prefix=')
  expect(listed.json).toMatchObject({ names: [{ name: 'b' }] })

  // What is built on the branch that lost is refused with what that lost to; what is sent again, too.
  expect(await submit(ab, a)).toMatchObject({ status: 409, json: { txid: competing.txid } })
  expect(await submit(a)).toMatchObject({ status: 409, json: { txid: competing.txid } })
  expect((await server.submit(beefOf(moved, { with: [ab] }))).status).toBe(200)
  // A lower block than the competing mint's: what is built on is mined by then, and so is what it is built on.
  const reorganised = await server.submit(beefOf(ab, { height: competing.height - 10 }))
  expect(reorganised.status).toBe(200)
  expect(await originOf(server, 'b')).toMatchObject({ code: 'NOT_FOUND' })
  expect(await originOf(server, 'ab')).toEqual({ name: 'ab', outpoint: ab.outpoint(2) })
  expect((await server.ask('/svc/names/ab')).json).toMatchObject({
    origin: ab.outpoint(2),
    sequence: 1,
    tip: { outpoint: moved.outpoint(0) },
  })
})

test('of an ordinal that is spent twice the proven transfer counts, and what it said and holds', async () => {
  const { chain, server, coin, purse } = await tree()
  const lock = { satoshis: 1, lockingScript: OPEN_LOCK }
  const note = chain.spend({
    inputs: [coin()],
    outputs: [
      {
        satoshis: 1,
        lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8('first'), lock: OPEN_LOCK }),
      },
    ],
  })
  expect((await server.submit(beefOf(note, { with: [purse] }), ['tm_ordinals'])).status).toBe(200)
  const inscribed = (body: string) => ({
    ...lock,
    lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(body), lock: OPEN_LOCK }),
  })
  const one = chain.spend({ inputs: [{ transaction: note, vout: 0 }, coin()], outputs: [inscribed('one')] })
  const further = chain.spend({ inputs: [{ transaction: one, vout: 0 }, coin()], outputs: [lock] })
  const other = chain.spend({ inputs: [{ transaction: note, vout: 0 }], outputs: [inscribed('other')] })
  await server.submit(beefOf(one), ['tm_ordinals'])
  await server.submit(beefOf(further), ['tm_ordinals'])
  const tip = async () => {
    const { status, headers, body } = await server.ask(`/content/${note.outpoint(0)}:-1`)
    return { status, outpoint: headers['x-outpoint'], sequence: headers['x-ord-seq'], body: body.toString() }
  }
  expect(await tip()).toEqual({ status: 200, outpoint: further.outpoint(0), sequence: '2', body: 'one' })
  await server.submit(beefOf(other, { height: one.height - 1 }), ['tm_ordinals'])
  expect(await tip()).toEqual({ status: 200, outpoint: other.outpoint(0), sequence: '1', body: 'other' })
  for (const lost of [one, further])
    expect((await server.ask(`/content/${lost.outpoint(0)}`)).status).toBe(404)
})

test('an ordinal is found no more by what a transfer said of it that lost to a plain one', async () => {
  const { chain, server, coin, purse, submit } = await tree()
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('one'), lock: OPEN_LOCK })
  const origin = chain.spend({ inputs: [coin()], outputs: [{ satoshis: 1, lockingScript }] })
  const next = (script: Uint8Array): FakeTransaction =>
    chain.spend({
      inputs: [{ transaction: origin, vout: 0 }, coin()],
      outputs: [{ satoshis: 1, lockingScript: script }],
    })
  const saying = next(concatBytes(OPEN_LOCK, mapTail({ app: 'shop' })))
  const plain = next(OPEN_LOCK)
  expect(await submit(origin)).toMatchObject({ status: 200 })
  expect(await submit(saying, origin)).toMatchObject({ status: 200 })
  const found = async (): Promise<unknown> => {
    const query = { map: { app: 'shop' } }
    const { json } = await server.ask('/lookup', posted({ service: 'ls_ordinals', query }))
    return json
  }
  expect(await found()).toMatchObject({ outputs: [{ outputIndex: 0 }] })
  const proven = beefOf(plain, { with: [purse, origin], unproven: [origin] })
  expect((await server.submit(proven)).status).toBe(200)
  expect(await found()).toMatchObject({ outputs: [] })
})
