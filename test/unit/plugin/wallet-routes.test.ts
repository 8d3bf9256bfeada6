import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { readAggregate } from '../../../src/client/lookup-source.js'
import { attachGateway } from '../../../src/gateway/index.js'
import { storesOf } from '../../../src/plugin/index.js'
import { offeredRequests } from '../../support/gateway/offered.js'
import { type PluginHost, startPluginHost } from '../../support/plugin/plugin-host.js'
import { ToolboxWallet } from '../../support/plugin/toolbox-wallet.js'
import {
  ask,
  posted,
  type Question,
  SILENT,
  submission,
  useServers,
} from '../../support/server/test-server.js'

const { folder } = useServers()

describe('a host with the routes of the gateway', () => {
  const wallet = new ToolboxWallet()
  const { genesis } = wallet.chain
  const mint = wallet.mint('a', { mined: true })
  let host: PluginHost
  let url: string
  beforeAll(async () => {
    host = await startPluginHost({
      deployment: wallet.chain.deployment,
      engine: '0.4.6',
      database: { name: 'host', KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' },
      configure: (each) =>
        attachGateway(each.app, storesOf(each.knex), {
          deployment: wallet.chain.deployment,
          logger: SILENT,
        }),
    })
    url = host.host.url
    for (const each of [genesis, mint]) {
      const { body, headers } = submission(wallet.beef(each), [])
      const sent = { method: 'POST', body, headers: { ...headers, 'x-topics': 'tm_names, tm_ordinals' } }
      expect((await ask(url, '/1sat/overlay/submit', sent)).json).toMatchObject({
        tm_names: { outputsToAdmit: each === genesis ? [0] : [0, 1, 2] },
      })
      await host.stored()
    }
  })
  afterAll(() => host.stop())

  test('says which groups of routes it has for wallets', async () => {
    for (const path of ['/capabilities', '/1sat/capabilities'])
      expect((await ask(url, path)).json).toEqual(['beef', 'txo', 'overlay', 'ordfs'])
  })

  test('answers everything that its OpenAPI document names', async () => {
    const asked = (path: string, question?: Question) => ask(url, path, question)
    const { requests } = await offeredRequests(asked, { outpoint: `${mint.txid}_2`, name: 'a' })
    const unknown = requests.filter(([, { body }]) => body.includes('ERR_ROUTE_NOT_FOUND'))
    expect(unknown.map(([request]) => request)).toEqual([])
    expect(requests.map(([request]) => request)).toContain('post /1sat/overlay/submit')
    // Its own root is another page.
    expect((await asked('/')).body.toString()).toBe('host')
  })

  test('puts histories together, and leaves other services to the engine', async () => {
    const query = { service: 'ls_names', query: { origin: 'a', history: true } }
    const headers = { 'X-Aggregation': 'yes', Accept: 'application/octet-stream' }
    for (const path of ['/lookup', '/1sat/overlay/lookup']) {
      const question = posted(query)
      const answer = await ask(url, path, { ...question, headers: { ...question.headers, ...headers } })
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/octet-stream'])
      const [output] = readAggregate(url, answer as never)
      expect([output?.txid, output?.vout]).toEqual([mint.txid, 2])
      // From the genesis on, where the engine cuts at the first proof.
      expect(readBeef(output?.beef ?? new Uint8Array()).txids).toEqual(
        expect.arrayContaining([genesis.txid, mint.txid]),
      )
      // The engine has read what was read already.
      const other = await ask(url, path, posted({ service: 'ls_other', query: { of: 'x'.repeat(1000) } }))
      expect([other.status, JSON.stringify(other.json)]).toEqual([400, expect.stringContaining('ls_other')])
      const long = await ask(url, path, posted({ service: 'ls_other', query: { of: 'x'.repeat(200_000) } }))
      expect([long.status, JSON.stringify(long.json)]).toEqual([400, expect.stringContaining('ls_other')])
    }
    const wrong = await ask(url, '/lookup', posted({ service: 'ls_names', query: { nothing: 1 } }))
    expect(wrong.json).toMatchObject({ code: 'BAD_BODY', status: 'error', message: expect.any(String) })
    // A peer that syncs asks for what the engine keeps.
    const question = posted({ service: 'ls_names', query: { nothing: 1 } })
    const synced = { ...question, headers: { ...question.headers, 'x-bsv-topic': 'tm_names' } }
    expect((await ask(url, '/lookup', synced)).json).not.toHaveProperty('code')
  })

  test('leaves to the host what else is below that prefix', async () => {
    expect((await ask(url, '/1sat/overlay/admin/ban', posted({}))).status).toBe(404)
  })

  test('has transactions and outputs', async () => {
    const beef = await ask(url, `/1sat/beef/${mint.txid}`)
    expect(beef.status).toBe(200)
    expect(readBeef(Uint8Array.from(beef.body)).subject.txid).toBe(mint.txid)
    const output = await ask(url, `/1sat/txo/${mint.txid}_2?sats=true`)
    expect(output.json).toMatchObject({ outpoint: `${mint.txid}_2`, satoshis: 1 })
    expect((await ask(url, `/1sat/txo/${'ab'.repeat(32)}_0`)).status).toBe(404)
    expect(output.headers['access-control-allow-origin']).toBe('*')
  })
})
