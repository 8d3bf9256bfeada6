import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Beef } from '@bsv/sdk'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { encodeOutpoint, formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { entityTag } from '../../../src/gateway/http/caching.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { beefOf, type FakeTransaction } from '../../support/protocol/fake-chain.js'
import {
  type MainnetVectors,
  mainnetTransaction,
  mainnetVectors,
} from '../../support/protocol/mainnet-vectors.js'
import { posted, type TestServer, useServers } from '../../support/server/test-server.js'

const vectors = mainnetVectors()
const folder = fileURLToPath(new URL('../../../../shared/vectors/mainnet/', import.meta.url))
const MAINNET = { PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only', CHAIN_SOURCES: 'none' }

const genesis = '58b7558ea379f24266c7e2f5fe321992ad9a724fd7a87423ba412677179ccb25'
const mintS = '935e2a477bda8709874c548fda2d504d490891ccfa5f8443705a8b6a3f403fda'
const mintSh = '29ad92e000dd59450fec92aa7b178e88219af92a88cad56109d3efda6d9a8c8a'
const image = '34adf92c766e11a656d3ff3508df7b1a31405821bf734bc9bef9fb43fcf701f9'
const json = 'b08538c963d2b88c7d26600a1c3c925a3388e942cdc5f903ecf0009f18c41ff3'
const text = '5633bb966d9531d22df7ae98a70966eebe4379d400d74ac948bf5b4f2867092c'

/** A transaction of the live chain with a merkle path of a block that holds nothing else. */
function wrapped(txid: string): Uint8Array {
  const transaction = mainnetTransaction(txid)
  const subject: FakeTransaction = {
    txid,
    raw: transaction.raw,
    transaction,
    height: 806_214,
    outpoint: (vout) => formatOutpoint({ txid, vout }),
  }
  return beefOf(subject)
}

/** What every route for names says when both mints are in. */
async function expectTheTree(server: TestServer): Promise<void> {
  for (const prefix of ['/svc/names', '/1sat/opns']) {
    const get = async (path: string) => {
      const { status, json: body } = await server.ask(`${prefix}${path}`)
      return { status, body }
    }
    expect(await get('/origin/s')).toMatchObject({ status: 200, body: { name: 's', outpoint: `${mintS}_2` } })
    expect(await get('/origin/sh')).toMatchObject({
      status: 200,
      body: { name: 'sh', outpoint: `${mintSh}_2` },
    })
    expect(await get('/origin/shr')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    expect(await get('/mine/shruggr')).toMatchObject({
      status: 200,
      body: { domain: 'sh', outpoint: `${mintSh}_1` },
    })
    expect(await get('/mine/sa')).toMatchObject({
      status: 200,
      body: { domain: 's', outpoint: `${mintSh}_0` },
    })
    expect(await get('/mine/zebra')).toMatchObject({
      status: 200,
      body: { domain: '', outpoint: `${mintS}_0` },
    })
    for (const taken of ['s', 'sh']) {
      expect(await get(`/mine/${taken}`)).toMatchObject({ status: 404, body: { code: 'TAKEN' } })
    }
    const asked = [
      `${mintS}_0`,
      `${mintS}_1`,
      `${mintS}_2`,
      `${mintSh}_1`,
      `${mintSh}_2`,
      `${mintSh}_3`,
      `${genesis}_0`,
      `${image}_0`,
      `${'00'.repeat(32)}_2`,
    ]
    const answer = await server.ask(`${prefix}/origins`, posted(asked))
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual(
      Object.fromEntries(asked.map((each) => [each, each === `${mintS}_2` || each === `${mintSh}_2`])),
    )
  }
}

async function expectTheContent(server: TestServer, { content }: MainnetVectors): Promise<void> {
  for (const { outpoint, contentType, bytes, sha256, text: words } of content) {
    const { status, headers, body } = await server.ask(`/content/${outpoint}`)
    expect(status).toBe(200)
    expect(headers['content-type']).toBe(contentType)
    expect(headers['content-length']).toBe(String(bytes))
    expect(body.length).toBe(bytes)
    const hash = createHash('sha256').update(body).digest('hex')
    if (sha256 !== undefined) expect(hash).toBe(sha256)
    if (words !== undefined) expect(body.toString('utf8')).toBe(words)
    expect(headers.etag).toBe(entityTag(hash, contentType))
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['x-outpoint']).toBe(outpoint)
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
  }
}

if (vectors === undefined) {
  test.skip('the live chain over HTTP (../shared/vectors/mainnet is absent)', () => undefined)
} else {
  const servers = useServers()
  const cli = useBuiltCli()

  describe('the live chain, submitted over HTTP', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await servers.start(MAINNET)
      for (const txid of [genesis, mintS, mintSh, image, json, text]) {
        const topics = [image, json, text].includes(txid) ? ['tm_ordinals'] : ['tm_names']
        expect((await server.submit(wrapped(txid), topics)).status).toBe(200)
      }
    })

    test('names, nodes and origins are those of the tree', async () => {
      await expectTheTree(server)
    })

    test.each([
      ['s', [genesis, mintS]],
      ['sh', [genesis, mintS, mintSh]],
    ])('the proof of %s holds its way from genesis and no more', async (name, way) => {
      for (const prefix of ['/svc/names', '/1sat/opns']) {
        const { status, body } = await server.ask(`${prefix}/proof/${name}`)
        expect(status).toBe(200)
        const origin = { txid: way.at(-1) ?? '', vout: 2 }
        expect(toHex(body.subarray(0, 40))).toBe(`16a7beef${toHex(encodeOutpoint(origin))}`)
        const beef = Beef.fromBinary(Array.from(body.subarray(40)))
        expect(beef.txs.map(({ txid }) => txid)).toEqual(way)
        // Of each the path that it was submitted with, though no block is made of these.
        for (const txid of way) expect(beef.findBump(txid)?.computeRoot(txid)).toBe(txid)
      }
    })

    test('content has the bytes that were inscribed, with their type', async () => {
      await expectTheContent(server, vectors)
    })

    test('a name output is served as the name', async () => {
      const { headers, body } = await server.ask(`/content/${mintSh}_2`)
      expect(headers['content-type']).toBe('application/op-ns')
      expect(body.toString('utf8')).toBe('sh')
    })
  })

  test('the topic answers to its alias, and under the alias', async () => {
    const server = await servers.start(MAINNET)
    const admitted = { outputsToAdmit: [0, 1, 2], coinsToRetain: [0] }
    expect((await server.submit(wrapped(genesis), ['tm_opns'])).json).toMatchObject({
      tm_opns: { outputsToAdmit: [0] },
    })
    expect((await server.submit(wrapped(mintS), ['tm_opns', 'tm_names', 'tm_ordinals'])).json).toEqual({
      tm_opns: admitted,
      tm_names: admitted,
      tm_ordinals: { outputsToAdmit: [2], coinsToRetain: [] },
    })
    expect((await server.ask('/svc/names/origin/s')).json).toEqual({ name: 's', outpoint: `${mintS}_2` })
    const managers = (await server.ask('/listTopicManagers')).json
    expect(Object.keys(managers as object).sort()).toEqual([
      ...['tm_OpNS', 'tm_names', 'tm_opns', 'tm_ordinals'],
    ])
    const answer = await server.ask('/lookup', posted({ service: 'ls_opns', query: { origin: 's' } }))
    expect(answer.json).toMatchObject({ type: 'output-list', outputs: [{ outputIndex: 2 }] })
  })

  describe('minetree import --trust', () => {
    test('of files in any order comes to the same, and is recorded as unproven', async () => {
      const paths = readdirSync(folder)
        .map((file) => `${folder}${file}`)
        .toReversed()
      const dataDir = await servers.folder()
      const { code, stdout } = await cli.run(['import', '--trust', ...paths], {
        ...MAINNET,
        DATA_DIR: dataDir,
        LOG_LEVEL: 'silent',
      })
      expect(code).toBe(0)
      expect(stdout).toContain('admitted 6 of 6 transactions')
      expect(stdout).toContain('not admitted: 0\n')
      const server = await servers.start({ ...MAINNET, DATA_DIR: dataDir })
      await expectTheTree(server)
      await expectTheContent(server, vectors)
      for (const txid of [genesis, mintS, mintSh, image, json, text]) {
        const kept = await server.node.graph.transactions.get(txid)
        expect(kept && toHex(kept.raw)).toBe(toHex(mainnetTransaction(txid).raw))
        expect(kept?.proof).toBeUndefined()
      }
      await server.stop()
    })
  })
}
