import { Beef } from '@bsv/sdk'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { verifyOutput } from '../../../../src/client/verify-output.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { OPERATOR, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const { start } = useServers()
const chain = new FakeChain()
const server = await start({ ...treeOf(chain.deployment), ...OPERATOR })

const blocks = new Map<string, number>()
const chainTracker = {
  isValidRootForHeight: async (root: string, height: number) => blocks.get(root) === height,
}
const made = (transaction: FakeTransaction): FakeTransaction => {
  blocks.set(transaction.txid, transaction.height)
  return transaction
}
const inscription = (text: string) => inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
const moved = (from: FakeTransaction, ...scripts: Uint8Array[]): FakeTransaction =>
  made(chain.spend({ inputs: [from], outputs: scripts }))

async function submit(
  transaction: FakeTransaction,
  options: Parameters<typeof beefOf>[1] = {},
): Promise<void> {
  await server.take(beefOf(transaction, options), ['tm_ordinals'])
}

const path = (reference: string): string => `/svc/gateway/proof/${reference}`
const proof = (reference: string, question?: Parameters<TestServer['ask']>[1]) =>
  server.ask(path(reference), question)
const txidsOf = (body: Uint8Array): string[] =>
  Beef.fromBinary([...body.subarray(40)]).txs.map(({ txid }) => txid)

const IMMUTABLE = 'public, max-age=31536000, immutable'

/** An ordinal at four steps: the second is moved only, and the third has other content. */
async function ordinal(): Promise<{ coin: FakeTransaction; steps: FakeTransaction[] }> {
  const coin = made(chain.spend({ outputs: [{ satoshis: 2, lockingScript: p2pkh(1) }] }))
  const first = moved(coin, inscription('first'), p2pkh(9))
  const second = moved(first, p2pkh(2))
  const third = moved(second, inscription('third'))
  const fourth = moved(third, p2pkh(4))
  const steps = [first, second, third, fourth]
  for (const [index, step] of steps.entries()) await submit(step, { with: [steps[index - 1] ?? coin] })
  return { coin, steps }
}

describe('the proof of an output', () => {
  test('is its transaction alone, and never changes once that is mined', async () => {
    const { steps } = await ordinal()
    const [first] = steps as [FakeTransaction]
    for (const reference of [first.outpoint(0), first.outpoint(0).replace('_', '.'), first.txid]) {
      const { status, headers, body } = await proof(reference)
      expect([status, headers['content-type']]).toEqual([200, 'application/octet-stream'])
      expect(headers).toMatchObject({ 'cache-control': IMMUTABLE, 'x-outpoint': first.outpoint(0) })
      expect(txidsOf(body)).toEqual([first.txid])
      const head = await proof(reference, { method: 'HEAD' })
      expect([head.status, head.headers.etag, head.body.length]).toEqual([200, headers.etag, 0])
      const known = await proof(reference, { headers: { 'If-None-Match': String(headers.etag) } })
      expect(known.status).toBe(304)
      const pointer = { kind: 'outpoint', outpoint: parseOutpoint(first.outpoint(0)) } as const
      const verified = await verifyOutput({ proof: body, pointer, chainTracker })
      expect(verified).toMatchObject({ height: first.height, content: { body: Buffer.from('first') } })
    }
  })

  test('of one that is too long to be cached whole is the same', async () => {
    const long = made(chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(100_000).fill(7) }))
    await submit(long)
    const { headers, body } = await proof(long.outpoint(0))
    expect(headers).toMatchObject({ 'cache-control': IMMUTABLE, 'x-outpoint': long.outpoint(0) })
    const pointer = { kind: 'transaction', txid: long.txid } as const
    const { content } = await verifyOutput({ proof: body, pointer, chainTracker })
    expect(content?.body).toHaveLength(100_000)
  })

  test('in no block comes with its ancestors for a minute, and with a merkle path as soon as there is one', async () => {
    // A lock that any push opens.
    const coin = made(chain.spend({ outputs: [Uint8Array.of(0x75, 0x51)] }))
    const open = moved(coin, inscription('waiting'))
    await submit(open, { proven: false, with: [coin] })
    const waiting = await proof(open.outpoint(0))
    expect(waiting.headers['cache-control']).toBe('public, max-age=60')
    expect(txidsOf(waiting.body)).toEqual([coin.txid, open.txid])
    await submit(open)
    const { headers, body } = await proof(open.outpoint(0))
    expect([headers['cache-control'], txidsOf(body)]).toEqual([IMMUTABLE, [open.txid]])
  })

  test('is none where content is none, or is no path', async () => {
    const { steps } = await ordinal()
    const [first] = steps as [FakeTransaction]
    for (const [reference, status, code] of [
      [`${'ab'.repeat(32)}_0`, 404, 'NOT_FOUND'],
      [first.outpoint(7), 404, 'NOT_FOUND'],
      [`${first.outpoint(0)}:9`, 404, 'NOT_FOUND'],
      [`${first.outpoint(0)}:x`, 400, 'BAD_SEQUENCE'],
      [`${first.outpoint(0)}/x`, 400, 'BAD_OUTPOINT'],
      ['x', 400, 'BAD_OUTPOINT'],
      ['%zz', 400, 'BAD_OUTPOINT'],
    ] as const) {
      const answer = await proof(reference)
      expect([reference, answer.status, answer.json]).toMatchObject([reference, status, { code }])
    }
  })

  test('is refused while anything in its transaction is blocked', async () => {
    const { steps } = await ordinal()
    const pair = made(chain.spend({ outputs: ['well', 'ill'].map((text) => inscription(text)) }))
    await submit(pair)
    const [first, , third] = steps as [FakeTransaction, FakeTransaction, FakeTransaction]
    const statuses = async (): Promise<number[]> => {
      const asked = [pair.outpoint(0), third.outpoint(0), `${first.outpoint(0)}:-1`, `${first.outpoint(0)}:1`]
      return await Promise.all(
        [...asked, `${steps[1]?.outpoint(0)}?next`].map(async (each) => (await proof(each)).status),
      )
    }
    expect(await statuses()).toEqual([200, 200, 200, 200, 200])
    const subjects = [{ outpoint: pair.outpoint(1) }, { outpoint: third.outpoint(0) }]
    for (const subject of subjects) await server.block(subject)
    // Where an ordinal came from is evidence; what it shows is not.
    expect(await statuses()).toEqual([451, 451, 451, 200, 451])
    for (const subject of subjects) await server.unblock(subject)
    expect(await statuses()).toEqual([200, 200, 200, 200, 200])
  })
})
